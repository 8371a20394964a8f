"""Copies of several calls as one: fewer records, the same memory."""

from hypothesis import given
from hypothesis import strategies as st

from bedstone.pool import Copies, Geometry, PageCopy, SlotClear, SlotCopy, merge
from pool_bytes import Memory

UNIT = 3
NUMBER = st.integers(1, 9)


@given(
    st.lists(st.tuples(NUMBER, NUMBER, st.integers(1, 4), st.integers(1, UNIT)), max_size=6),
    st.lists(st.tuples(NUMBER, NUMBER, st.integers(1, 4), st.booleans()), max_size=6),
)
def test_merged_copies_do_what_they_do_one_by_one(pages, slots):
    several = [
        Copies(pages=(PageCopy(source + at, target + at, UNIT if at + 1 < count else last),))
        for source, target, count, last in pages
        for at in range(count)
    ]
    several += [
        Copies(slots=(SlotClear(target + at) if clear else SlotCopy(source + at, target + at),))
        for source, target, count, clear in slots
        for at in range(count)
    ]
    one_by_one, at_once = (
        Memory(Geometry(pages=13, unit=UNIT, row=9, slots=13), None) for _ in range(2)
    )
    for memory in (one_by_one, at_once):
        memory.positions = [(at,) for at in range(len(memory.positions))]
        memory.slots = [(at,) for at in range(len(memory.slots))]
    for copies in several:
        one_by_one.make(copies)
    merged = merge(several, UNIT)
    at_once.make(merged)
    assert (at_once.positions, at_once.slots) == (one_by_one.positions, one_by_one.slots)
    assert len(merged.pages) + len(merged.slots) <= len(several)


def test_neighbours_are_one_run():
    pages = [Copies(pages=(PageCopy(at, at + 5, 4),)) for at in range(3)]
    pages.append(Copies(pages=(PageCopy(3, 8, 2),)))
    slots = [Copies(slots=(SlotCopy(1, 5), SlotCopy(2, 6), SlotClear(7), SlotClear(8)))]
    assert merge(pages + slots, 4) == Copies(
        (PageCopy(0, 5, 14),), (SlotCopy(1, 5, 2), SlotClear(7, 2))
    )


def test_a_copy_of_what_was_just_copied_stays_its_own():
    chain = [Copies(slots=(SlotCopy(1, 2),)), Copies(slots=(SlotCopy(2, 3),))]
    assert len(merge(chain, 1).slots) == 2
    assert not merge([], 1)
