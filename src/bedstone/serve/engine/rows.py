"""The sequences of a step, as arrays: a row a sequence.

Rows are always the first of the arrays; where one leaves, the last takes its place.
"""

from collections import Counter
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
class Needs:
    """What a token of each row needs: their names in order, and the tokens that end any of them."""

    names: tuple[str, ...]
    stops: frozenset[int]


@dataclass(slots=True)
class Least:
    """In how many steps of all rows something is so of one of them: `exact`, or not before."""

    steps: int = 0
    exact: bool = False

    def set(self, steps: int) -> None:
        """That was found out."""
        self.steps, self.exact = steps, True

    def join(self, steps: int) -> None:
        """Of another row it is so in that many."""
        self.steps = min(self.steps, steps)


class Rows:
    """The sequences of a step, `most` of them. `room` tokens of each have a place.

    States have up to `pages` of `unit` tokens a sequence, 0 where none is paged; `ends` is how many
    tokens there are once the last has been made. `edition` counts the changes of who is there.
    What goes in of rows that belong to nobody lies in `pad`, a page, and in no line. `slow` of the
    sequences need the host between two steps, those that are `bound` by a constraint at each token.

    Kernels leave nothing of ours in the host's caches, so a step that all rows just go on from
    touches none of them: its tokens are set aside until somebody asks for what they change, and
    where its own go was found for several steps at once. Whoever comes or goes touches no others.
    """

    def __init__(self, most: int, pages: int, unit: int, pad: int = 0) -> None:
        self.sequences: list[Sequence] = []
        self.bound: list[Sequence] = []
        self.slow = 0
        self.edition = 0
        self._paged, self._unit = pages > 0, unit
        self._idle = np.array([0, 0, 1, pad * unit], np.int32)
        self._next = np.repeat(self._idle[:, None], most, axis=1)
        self.room = np.full(most, _UNBOUNDED)
        self.ends = np.zeros(most, np.int64)
        # of each page in the order a sequence fills them: its slots are so far above its positions
        self._above = np.zeros((most, pages), np.int32)
        self._arrays = (self._next.T, self.room, self.ends, self._above)
        self._each_row, self._each_page = np.arange(most), np.arange(pages)
        self._names: list[str] = []
        self._stops: Counter[frozenset[int]] = Counter()
        self._needs = Needs((), frozenset())
        self._needs_of = -1
        self._left, self._spare = Least(), Least()
        self._longest: int | None = None
        self._plan: NDArray[np.int32] | None = None
        self._plan_of = -1
        self._planned = 0
        self._taken = 0
        self._made = self._next[TOKEN]
        self._behind = 0
        self._aside: list[Items[int]] = []
        # of each row: its sequence has what was set aside before
        self._since: list[int] = []
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
            for row in range(len(self.sequences)):
                self._settle_row(row)
            self._aside, self._since = [], [0] * len(self.sequences)

    def _settle_row(self, row: int) -> None:
        aside, since = self._aside, self._since[row]
        self.sequences[row].tokens += [aside[step][row] for step in range(since, len(aside))]
        self._since[row] = len(aside)

    def _catch_up(self) -> None:
        """Have what goes in next, and where, after the steps that were set aside."""
        if self._behind:
            count = len(self.sequences)
            self._next[TOKEN, :count] = self._made
            self._next[POSITION : LENGTH + 1, :count] += self._behind
            self._behind = 0

    def add(self, sequence: Sequence) -> int:
        """Give a sequence, of which only the last token is not fed, the next row."""
        self._catch_up()
        row, at = len(self.sequences), sequence.fed
        self.sequences.append(sequence)
        self._names.append(sequence.id)
        self._since.append(len(self._aside))
        self._stops[sequence.stops] += 1
        self.slow += sequence.slow
        if sequence.request.constraint is not None:
            self.bound.append(sequence)
        sequence.row = row
        self._next[:SLOT, row] = sequence.tokens[-1], at, at + 1
        self.ends[row] = sequence.end
        self._left.join(sequence.end - at - 1)
        if self._longest is not None:
            self._longest = max(self._longest, at + 1)
        self._changed()
        return row

    def remove(self, sequence: Sequence) -> tuple[int, int]:
        """Take a sequence out; the row that is free, and the one whose holder takes it."""
        self._catch_up()
        row, last = sequence.row, len(self.sequences) - 1
        self._settle_row(row)
        sequence.row = -1
        sequence.fed = int(self._next[POSITION, row])
        if row != last:
            self._settle_row(last)
            moved = self.sequences[last]
            moved.row = row
            self.sequences[row] = moved
            self._names[row], self._since[row] = moved.id, self._since[last]
            for array in self._arrays:
                array[row] = array[last]
        del self.sequences[last], self._names[last], self._since[last]
        self._next[:, last] = self._idle
        self._stops[sequence.stops] -= 1
        self.slow -= sequence.slow
        if sequence.request.constraint is not None:
            self.bound.remove(sequence)
        if sequence.fed + 1 == self._longest:
            self._longest = None
        self._left.exact = self._spare.exact = False
        self._changed()
        return row, last

    def _changed(self) -> None:
        self.edition += 1
        self._plan = None

    def hold(self, row: int, pages: Items[int]) -> None:
        """A row has these pages."""
        self._plan = None
        if self._paged:
            count = len(pages)
            self.room[row] = room = count * self._unit
            if room < self.ends[row] - 1:
                self._spare.join(room - int(self.positions[row]))
            self._above[row, :count] = (np.array(pages) - self._each_page[:count]) * self._unit

    def hold_more(
        self, rows: NDArray[np.intp], places: NDArray[np.intp], pages: NDArray[np.intp]
    ) -> None:
        """Rows [n] have pages [n] more, as their number `places` [n]; of one row in that order."""
        self._plan = None
        self._spare.exact = False
        if self._paged:
            self.room[rows] = (places + 1) * self._unit
            self._above[rows, places] = (pages - places) * self._unit

    def set_aside(self, made: NDArray[np.generic], tokens: Items[int]) -> None:
        """Each row has a token more, and its sequence: those made, and the same as `tokens`."""
        self._made = made
        self._aside.append(tokens)
        self._behind += 1
        if len(self._aside) == _MOST_ASIDE:
            self.settle()
        self._count_on()

    def _count_on(self) -> None:
        self._taken += 1
        self._left.steps -= 1
        self._spare.steps -= 1
        if self._longest is not None:
            self._longest += 1

    def take_back(self, sequence: Sequence) -> None:
        """The last token that a sequence was given is none of it."""
        self._settle_row(sequence.row)
        sequence.tokens.pop()

    def needs(self) -> Needs:
        """What a token of each row needs."""
        if self._needs_of != self.edition:
            self._needs_of = self.edition
            self._stops = +self._stops
            self._needs = Needs(tuple(self._names), frozenset[int]().union(*self._stops))
        return self._needs

    def places_in(self, sequences: Items[Sequence]) -> list[int]:
        """Which of some sequences each row's is."""
        places = {sequence.id: place for place, sequence in enumerate(sequences)}
        return [places[name] for name in self._names]

    def complete(self) -> list[Sequence]:
        """Those whose last token has been made."""
        if not self.sequences or self._left.steps > 0 or self.steps_left() > 0:
            return []
        count = len(self.sequences)
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
        self._plan[step, TOKEN, :count] = self._made if self._behind else self._next[TOKEN, :count]
        return self._plan, step

    def _look_ahead(self) -> NDArray[np.int32]:
        """What goes in with the steps that all rows have a place for, some at most.

        With one where others came or went since the last time: those there are now may not stay.
        """
        self._catch_up()
        count = len(self.sequences)
        young, self._plan_of = self._plan_of != self.edition, self.edition
        steps = 1 if young else min(_MOST_PLANNED, self.steps_left(), self._places())
        plan = np.empty((steps, *self._next.shape), np.int32)
        plan[:] = self._next
        if steps > 1:
            plan[:, POSITION : LENGTH + 1, :count] += _STEPS[:steps]
        at = plan[:, POSITION, :count]
        plan[:, SLOT, :count] = at
        if self._paged:
            plan[:, SLOT, :count] += self._above[self._each_row[:count], at // self._unit]
        return plan

    def short(self, ahead: int) -> list[Sequence]:
        """Those without a place for their next `ahead` tokens, as far as they have as many."""
        if ahead <= self._spare.steps or ahead <= self._places():
            return []
        count = len(self.sequences)
        at, needed, room = self.positions[:count], self.ends[:count] - 1, self.room[:count]
        short = np.flatnonzero(room < np.minimum(at + ahead, needed))
        return [self.sequences[row] for row in short]

    def _places(self) -> int:
        """For how many tokens each row has a place, as far as it makes as many."""
        if not self._spare.exact:
            count = len(self.sequences)
            at, needed, room = self.positions[:count], self.ends[:count] - 1, self.room[:count]
            places = (room - at).min(where=room < needed, initial=_UNBOUNDED)
            self._spare.set(int(places))
        return self._spare.steps

    def steps_left(self) -> int:
        """How many steps until the first of them has made its last token."""
        if not self._left.exact:
            count = len(self.sequences)
            # a row at position p makes the token p + 1
            self._left.set(int((self.ends[:count] - self.positions[:count]).min()) - 1)
        return self._left.steps

    def longest(self) -> int:
        """How many tokens the states of the longest hold once the next step is in."""
        if self._longest is None:
            self._longest = int(self.positions[: len(self.sequences)].max()) + 1
        return self._longest
