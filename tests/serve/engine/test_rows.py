"""What is said of the rows follows them, however they come, grow, go on and leave."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bedstone.serve.engine.rows import Needs, Rows
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.requests import Request, Sampling

MOST, PAGES, UNIT, PAD = 4, 16, 4, 5

ACTS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "grow", "aside", "next"]),
        st.integers(0, MOST - 1),
        st.integers(1, 9),
        st.integers(1, 20),
    ),
    max_size=40,
)


def sequence(prompt: int, most: int) -> Sequence:
    made = Sequence.of(Request("r", [1] * prompt, most), prompt * most)
    made.fed = prompt - 1
    return made


def grow(rows: Rows, row: int, more: int) -> None:
    had = int(rows.room[row]) // UNIT
    places = np.arange(had, min(PAGES, had + more))
    rows.hold_more(np.full(len(places), row), places, page(rows.sequences[row], places))


def page(held: Sequence, places: np.ndarray) -> np.ndarray:
    """The pages of a sequence: others for each, in no order."""
    return (places * 7 + held.order) % 1009


@given(ACTS, st.sampled_from([PAGES, 0]))
def test_bounds_are_those_of_the_rows(acts, pages):
    rows = Rows(MOST, pages, UNIT, PAD)
    for act, at, few, many in acts:
        row = at % max(1, len(rows))
        if act == "add" and len(rows) < MOST:
            row = rows.add(sequence(few, many))
            rows.hold(row, page(rows.sequences[row], np.arange(few)).tolist())
        elif act == "remove" and len(rows):
            rows.remove(rows.sequences[row])
        elif act == "grow" and len(rows) and pages:
            grow(rows, row, few)
        elif act == "next":
            require_next(rows, paged=bool(pages))
        elif act == "aside" and len(rows):
            set_aside(rows, few, many)
            require_next(rows, paged=bool(pages))
        compare(rows)


def require_next(rows: Rows, *, paged: bool) -> None:
    """What goes in next of each row that has a place for it, and of those that nobody has."""
    places = rows.room[: len(rows)] - rows.positions[: len(rows)]
    if not len(rows) or rows.steps_left() < 1 or places.min() < 1:
        return
    plan, step = rows.next()
    for row, held in enumerate(rows.sequences):
        at = int(rows.positions[row])
        slot = int(page(held, np.int64(at // UNIT))) * UNIT + at % UNIT if paged else at
        assert plan[step, :, row].tolist() == [rows.tokens[row], at, at + 1, slot]
    pads = plan[step, :, len(rows) :].T.tolist()
    assert pads == [[0, 0, 1, PAD * UNIT]] * (MOST - len(rows))


def set_aside(rows: Rows, steps: int, token: int) -> None:
    """Steps that all rows go on from, one after another."""
    before = [list(each.tokens) for each in rows.sequences]
    at = rows.positions[: len(rows)].tolist()
    made = [np.arange(len(rows), dtype=np.int32) + token + step for step in range(steps)]
    for each in made:
        rows.set_aside(each, each.tolist())
    assert rows.longest() == max(at) + steps + 1
    rows.settle()
    assert rows.tokens[: len(rows)].tolist() == made[-1].tolist()
    assert rows.positions[: len(rows)].tolist() == [each + steps for each in at]
    for row, (held, each) in enumerate(zip(before, rows.sequences, strict=True)):
        assert each.tokens == [*held, *(int(step[row]) for step in made)]


def compare(rows: Rows) -> None:
    """With what is found by looking at each row."""
    each = [
        (s, int(rows.positions[r]), int(rows.ends[r]), int(rows.room[r]))
        for r, s in enumerate(rows.sequences)
    ]
    assert rows.complete() == [s for s, at, end, _ in each if at + 1 >= end]
    for ahead in (1, 2, 5):
        wanted = [s for s, at, end, room in each if room < min(at + ahead, end - 1)]
        assert rows.short(ahead) == wanted
    if each:
        assert rows.steps_left() == min(end - at for _, at, end, _ in each) - 1
        assert rows.longest() == max(at for _, at, _, _ in each) + 1


def test_what_the_rows_need_is_that_of_those_who_are_there():
    rows = Rows(3, 1, UNIT)
    for name, stop in (("a", [5]), ("b", [7, 8]), ("c", [8])):
        rows.add(Sequence.of(Request(name, [1], 4, stop_ids=stop), 0))
    assert rows.needs() == Needs(("a", "b", "c"), frozenset({5, 7, 8}))
    assert rows.places_in(rows.sequences[::-1]) == [2, 1, 0]
    rows.remove(rows.sequences[0])
    assert rows.needs() == Needs(("c", "b"), frozenset({7, 8}))
    assert not rows.slow
    asks = Sequence.of(Request("d", [1], 4, sampling=Sampling(logprobs=1)), 0)
    bound = Sequence.of(Request("e", [1], 4, constraint=object()), 0)
    for each, count in ((asks, 1), (bound, 2)):
        if len(rows) == 3:
            rows.remove(rows.sequences[0])
        rows.add(each)
        assert rows.slow == count
    assert rows.bound == [bound]
    rows.remove(bound)
    rows.remove(asks)
    assert not rows.slow
    assert not rows.bound


def test_a_token_that_is_taken_back_was_never_given():
    rows = Rows(1, PAGES, UNIT)
    made = sequence(3, 5)
    rows.add(made)
    for token in (4, 9):
        rows.set_aside(np.array([token], np.int32), [token])
    rows.take_back(made)
    rows.remove(made)
    assert made.tokens == [1, 1, 1, 4]
    assert made.fed == 4
