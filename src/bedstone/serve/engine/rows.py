"""The sequences of a step, as arrays: a row a sequence.

Rows are always the first of the arrays; where one leaves, the last takes its place.
"""

from collections.abc import Sequence as Items
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.serve.engine.sequence import Sequence

TOKEN, POSITION, LENGTH, SLOT = range(4)
"""What of a row goes into its next step: the token, where in the sequence, how long that is then,
and where in the paged states."""

_UNBOUNDED = np.iinfo(np.int64).max
_MOST_ASIDE = 64
_MOST_PLANNED = 32
_STEPS = np.arange(_MOST_PLANNED, dtype=np.int32)[:, None, None]


@dataclass(frozen=True, slots=True)
class Plain:
    """What a token of each row needs: their names in order, and the tokens that end any of them."""

    names: tuple[str, ...]
    stops: frozenset[int]


@dataclass(slots=True)
class Bounds:
    """What holds for all rows, and moves by one with each step that all of them take.

    `left` steps until the first has made its last token; `longest` tokens in the states once the
    next step is in.
    """

    left: int
    longest: int


class Rows:
    """The sequences of a step, `most` of them. `room` tokens of each have a place.

    States have up to `pages` of `unit` tokens a sequence, 0 where none is paged; `ends` is how many
    tokens there are once the last has been made. `edition` counts the changes of who is there.
    What goes in of rows that belong to nobody lies in `pad`, a page, and in no line.

    Kernels leave nothing of ours in the host's caches, so a step that all rows just go on from
    touches none of them: its tokens are set aside until somebody asks for what they change, and
    where its own go was found for several steps at once.
    """

    def __init__(self, most: int, pages: int, unit: int, pad: int = 0) -> None:
        self.sequences: list[Sequence] = []
        self.edition = 0
        self._paged, self._unit = pages > 0, unit
        self._idle = np.array([0, 0, 1, pad * unit], np.int32)
        self._next = np.repeat(self._idle[:, None], most, axis=1)
        self.room = np.full(most, _UNBOUNDED)
        self.ends = np.zeros(most, np.int64)
        self.needs_host = np.zeros(most, bool)
        # of each page in the order a sequence fills them: its slots are so far above its positions
        self._above = np.zeros((most, pages), np.int32)
        self._arrays = (self._next.T, self.room, self.ends, self.needs_host, self._above)
        self._each_row = np.arange(most)
        self._plain: Plain | None = None
        self._plain_of = -1
        self._bounds: Bounds | None = None
        self._spare: int | None = None
        self._plan: NDArray[np.int32] | None = None
        self._planned = 0
        self._taken = 0
        self._aside: list[NDArray[np.generic]] = []
        self._behind = 0
        self._all: tuple[Sequence, ...] = ()
        self._all_of = -1

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def tokens(self) -> NDArray[np.int32]:
        """What goes in next of each row."""
        self._catch_up()
        tokens: NDArray[np.int32] = self._next[TOKEN]
        return tokens

    @property
    def positions(self) -> NDArray[np.int32]:
        """Where it goes."""
        self._catch_up()
        at: NDArray[np.int32] = self._next[POSITION]
        return at

    @property
    def all(self) -> tuple[Sequence, ...]:
        """The sequences in order, the same object while nobody comes or goes."""
        if self._all_of != self.edition:
            self._all, self._all_of = tuple(self.sequences), self.edition
        return self._all

    def settle(self) -> None:
        """Give the sequences their tokens that were set aside."""
        self._catch_up()
        if self._aside:
            made, self._aside = np.stack(self._aside, axis=1).tolist(), []
            for sequence, tokens in zip(self.sequences, made, strict=True):
                sequence.tokens.extend(tokens)

    def _catch_up(self) -> None:
        """Have what goes in next, and where, after the steps that were set aside."""
        if self._behind:
            count = len(self.sequences)
            self._next[TOKEN, :count] = self._aside[-1]
            self._next[POSITION : LENGTH + 1, :count] += self._behind
            self._behind = 0

    def add(self, sequence: Sequence, *, needs_host: bool) -> int:
        """Give a sequence, of which only the last token is not fed, the next row."""
        self.settle()
        row = len(self.sequences)
        self.sequences.append(sequence)
        sequence.row = row
        self._next[:SLOT, row] = sequence.tokens[-1], sequence.fed, sequence.fed + 1
        self.ends[row] = sequence.end
        self.needs_host[row] = needs_host
        self._changed()
        return row

    def remove(self, sequence: Sequence) -> tuple[int, int]:
        """Take a sequence out; the row that is free, and the one whose holder takes it."""
        self.settle()
        row, last = sequence.row, len(self.sequences) - 1
        sequence.row = -1
        sequence.fed = int(self._next[POSITION, row])
        moved = self.sequences.pop()
        if row != last:
            self.sequences[row] = moved
            moved.row = row
            for array in self._arrays:
                array[row] = array[last]
        self._next[:, last] = self._idle
        self._changed()
        return row, last

    def _changed(self) -> None:
        self.edition += 1
        self._forget()

    def _forget(self) -> None:
        self._bounds = self._spare = self._plan = None

    def hold(self, row: int, pages: Items[int]) -> None:
        """A row has these pages."""
        self._spare = self._plan = None
        if self._paged:
            count = len(pages)
            self.room[row] = count * self._unit
            self._above[row, :count] = (np.array(pages) - np.arange(count)) * self._unit

    def hold_more(
        self, rows: NDArray[np.intp], places: NDArray[np.intp], pages: NDArray[np.intp]
    ) -> None:
        """Rows [n] have pages [n] more, as their number `places` [n]; of one row in that order."""
        self._spare = self._plan = None
        if self._paged:
            self.room[rows] = (places + 1) * self._unit
            self._above[rows, places] = (pages - places) * self._unit

    def advance(self, rows: Items[int], tokens: Items[int]) -> None:
        """Some rows have a token more each, which goes in next; their sequences are not told."""
        self.settle()
        every = len(rows) == len(self.sequences)
        # by far the quicker way, and what nearly all steps of rows that need the host are
        at = slice(len(rows)) if every and rows == [*range(len(rows))] else rows
        self._next[TOKEN, at] = tokens
        self._next[POSITION : LENGTH + 1, at] += 1
        if every:
            self._count_on()
        else:
            self._forget()

    def set_aside(self, made: NDArray[np.generic]) -> None:
        """Each row has a token more, and its sequence."""
        self._aside.append(made)
        self._behind += 1
        if len(self._aside) == _MOST_ASIDE:
            self.settle()
        self._count_on()

    def _count_on(self) -> None:
        self._taken += 1
        if self._bounds is not None:
            self._bounds.left -= 1
            self._bounds.longest += 1
        if self._spare is not None:
            self._spare -= 1

    def plain(self) -> Plain | None:
        """What tokens of the rows need, where none of them needs the host."""
        if self._plain_of != self.edition:
            rows = self.sequences
            slow = self.needs_host[: len(rows)].any()
            self._plain_of = self.edition
            self._plain = (
                None
                if slow
                else Plain(
                    tuple(each.id for each in rows),
                    frozenset[int]().union(*(each.stops for each in rows)),
                )
            )
        return self._plain

    def complete(self) -> list[Sequence]:
        """Those whose last token has been made."""
        count = len(self.sequences)
        if not count or self._reckoned().left > 0:
            return []
        done = np.flatnonzero(self.positions[:count] + 1 >= self.ends[:count])
        return [self.sequences[row] for row in done]

    def held(self) -> list[tuple[Sequence, int]]:
        """Each with how many tokens its states hold."""
        self.settle()
        return list(zip(self.sequences, self.positions.tolist(), strict=False))

    def next(self) -> tuple[NDArray[np.int32], int]:
        """What goes in [steps, 4, most] with the next steps, and which of them is next.

        Of later ones the tokens are not known yet. Rows that nobody has are the last.
        """
        step = self._taken - self._planned
        if self._plan is None or step >= len(self._plan):
            self._plan, self._planned, step = self._look_ahead(), self._taken, 0
        count = len(self.sequences)
        made = self._aside[-1] if self._behind else self._next[TOKEN, :count]
        self._plan[step, TOKEN, :count] = made
        return self._plan, step

    def _look_ahead(self) -> NDArray[np.int32]:
        """What goes in with the steps that all rows have a place for, some at most."""
        self._catch_up()
        count = len(self.sequences)
        steps = min(_MOST_PLANNED, self.steps_left(), self._places())
        plan = np.empty((steps, *self._next.shape), np.int32)
        plan[:] = self._next
        plan[:, POSITION : LENGTH + 1, :count] += _STEPS[:steps]
        at = plan[:, POSITION, :count]
        plan[:, SLOT, :count] = at
        if self._paged:
            plan[:, SLOT, :count] += self._above[self._each_row[:count], at // self._unit]
        return plan

    def short(self, ahead: int) -> list[Sequence]:
        """Those without a place for their next `ahead` tokens, as far as they have as many."""
        if ahead <= self._places():
            return []
        count = len(self.sequences)
        at, needed, room = self.positions[:count], self.ends[:count] - 1, self.room[:count]
        short = np.flatnonzero(room < np.minimum(at + ahead, needed))
        return [self.sequences[row] for row in short]

    def _places(self) -> int:
        """For how many tokens each row has a place, as far as it makes as many."""
        if self._spare is None:
            count = len(self.sequences)
            at, needed, room = self.positions[:count], self.ends[:count] - 1, self.room[:count]
            self._spare = int((room - at).min(where=room < needed, initial=_UNBOUNDED))
        return self._spare

    def steps_left(self) -> int:
        """How many steps until the first of them has made its last token."""
        return self._reckoned().left

    def longest(self) -> int:
        """How many tokens the states of the longest hold once the next step is in."""
        return self._reckoned().longest

    def _reckoned(self) -> Bounds:
        if self._bounds is None:
            count = len(self.sequences)
            at, ends = self.positions[:count], self.ends[:count]
            # a row at position p makes the token p + 1
            self._bounds = Bounds(int((ends - at).min()) - 1, int(at.max()) + 1)
        return self._bounds
