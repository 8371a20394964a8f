"""What is said of the rows follows them, however they come, grow, go on and leave."""

from itertools import count

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bedstone.serve.engine.rows import Needs, Rows
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.requests import Request, Sampling

MOST, PAGES, UNIT, PAD = 4, 40, 4, 5
NUMBERS = count()

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
    order = next(NUMBERS)
    made = Sequence.of(Request(f"r{order}", [1] * prompt, most), order)
    made.fed = prompt - 1
    return made


def page(held: Sequence, place: int) -> int:
    """The pages of a sequence: others for each, in no order."""
    return (place * 7 + held.order) % 1009


class Plainly:
    """What is said of the rows, found by looking at each."""

    def __init__(self, *, paged: bool) -> None:
        self.rows = Rows(MOST, UNIT, PAD, paged=paged)
        self.paged = paged
        self.pages: dict[Sequence, int] = {}
        self.fed: dict[Sequence, int] = {}
        self.made: dict[Sequence, list[int]] = {}

    def add(self, prompt: int, most: int) -> None:
        new = sequence(prompt, most)
        self.pages[new] = 1 + prompt // UNIT
        self.fed[new], self.made[new] = new.fed, list(new.tokens)
        self.rows.add(new, [page(new, place) for place in range(self.pages[new])])

    def remove(self, row: int) -> None:
        gone = self.rows.sequences[row]
        self.rows.remove(gone)
        assert (gone.tokens, gone.fed, gone.row) == (self.made[gone], self.fed[gone], -1)

    def grow(self, row: int, more: int) -> None:
        held = self.rows.sequences[row]
        had, self.pages[held] = self.pages[held], self.pages[held] + more
        self.rows.grow(row, [page(held, place) for place in range(had, had + more)])

    def aside(self, steps: int, token: int) -> None:
        for step in range(steps):
            made = np.arange(len(self.rows), dtype=np.int32) + token + step
            self.rows.set_aside(made, made.tolist())
            for each, one in zip(self.rows.sequences, made.tolist(), strict=True):
                self.made[each].append(one)
                self.fed[each] += 1

    def room(self, held: Sequence) -> int:
        return self.pages[held] * UNIT if self.paged else 10**6

    def require_next(self) -> None:
        """What goes in next of each row that has a place for it, and of those nobody has."""
        values = self.rows.next()
        for row, held in enumerate(self.rows.sequences):
            at = self.fed[held]
            slot = page(held, at // UNIT) * UNIT + at % UNIT if self.paged else at
            if at < self.room(held):
                assert values[:, row].tolist() == [self.made[held][-1], at, at + 1, slot]
        pads = values[:, len(self.rows) :].T.tolist()
        assert pads == [[0, 0, 1, PAD * UNIT]] * (MOST - len(self.rows))

    def require_same(self) -> None:
        rows = self.rows
        each = [(held, self.fed[held], held.end) for held in rows.sequences]
        assert [held.row for held in rows.sequences] == [*range(len(rows))]
        assert set(rows.complete()) == {held for held, at, end in each if at + 1 >= end}
        for ahead in (1, 2, 5):
            short = {h for h, at, end in each if self.room(h) < min(at + ahead, end - 1)}
            assert set(rows.short(ahead)) == short
            assert len(rows.short(ahead)) == len(short)
        assert [rows.fed(held) for held in rows.sequences] == [at for _, at, _ in each]
        if each:
            assert rows.steps_left() == min(end - at for _, at, end in each) - 1
            assert rows.longest() == max(at for _, at, _ in each) + 1


@given(ACTS, st.booleans())
def test_what_holds_for_all_is_that_of_each(acts, paged):
    plainly = Plainly(paged=paged)
    rows = plainly.rows
    for act, at, few, many in acts:
        row = at % max(1, len(rows))
        if act == "add" and len(rows) < MOST:
            plainly.add(few, many)
        elif act == "remove" and len(rows):
            plainly.remove(row)
        elif act == "grow" and len(rows):
            plainly.grow(row, few)
        elif act == "next":
            plainly.require_next()
        elif act == "aside" and len(rows):
            plainly.aside(few, many)
        plainly.require_same()
    plainly.require_next()
    assert dict(rows.held()) == {held: plainly.fed[held] for held in rows.sequences}
    assert [held.tokens for held in rows.sequences] == [plainly.made[h] for h in rows.sequences]


def test_what_the_rows_need_is_that_of_those_who_are_there():
    rows = Rows(3, UNIT)
    for order, stop in enumerate(([5], [7, 8], [8])):
        rows.add(Sequence.of(Request("abc"[order], [1], 4, stop_ids=stop), order), [0])
    assert rows.needs() == Needs(("a", "b", "c"), frozenset({5, 7, 8}))
    assert rows.places_in(rows.sequences[::-1]) == [2, 1, 0]
    rows.remove(rows.sequences[0])
    assert rows.needs() == Needs(("c", "b"), frozenset({7, 8}))
    assert not rows.slow
    asks = Sequence.of(Request("d", [1], 4, sampling=Sampling(logprobs=1)), 3)
    bound = Sequence.of(Request("e", [1], 4, constraint=object()), 4)
    for each, slow in ((asks, 1), (bound, 2)):
        if len(rows) == 3:
            rows.remove(rows.sequences[0])
        rows.add(each, [0])
        assert rows.slow == slow
    assert rows.bound == [bound]
    rows.remove(bound)
    rows.remove(asks)
    assert not rows.slow
    assert not rows.bound


def test_a_token_that_is_taken_back_was_never_given():
    rows, made = Rows(1, UNIT), sequence(3, 5)
    rows.add(made, [0, 1])
    for token in (4, 9):
        rows.set_aside(np.array([token], np.int32), [token])
    rows.take_back(made)
    rows.remove(made)
    assert made.tokens == [1, 1, 1, 4]
    assert made.fed == 4
