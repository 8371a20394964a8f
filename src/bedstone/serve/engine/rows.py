"""The sequences of a step, as arrays: a row a sequence.

Rows are always the first of the arrays; where one leaves, the last takes its place.
"""

from collections.abc import Sequence as Items
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.serve.engine.sequence import Sequence

_UNBOUNDED = np.iinfo(np.int64).max
_MOST_ASIDE = 64


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
    """The sequences of a step. `tokens` go in next, at `positions`; `room` tokens have a place.

    `pages` are in the order a sequence fills them; `ends` is how many tokens there are once the
    last has been made. `edition` counts the changes of who is there.

    Kernels leave nothing of ours in the host's caches, so a step that all rows just go on from
    touches none of them: its tokens are set aside until somebody asks for what they change.
    """

    def __init__(self, most: int, pages: int) -> None:
        self.sequences: list[Sequence] = []
        self.edition = 0
        self._tokens = np.zeros(most, np.int32)
        self._positions = np.zeros(most, np.int32)
        self.room = np.zeros(most, np.int64)
        self.ends = np.zeros(most, np.int64)
        self.needs_host = np.zeros(most, bool)
        self.pages = np.zeros((most, max(1, pages)), np.int32)
        self._arrays = (
            self._tokens,
            self._positions,
            self.room,
            self.ends,
            self.needs_host,
            self.pages,
        )
        self._each_row = np.arange(most)
        self._plain: Plain | None = None
        self._plain_of = -1
        self._bounds: Bounds | None = None
        self._spare: int | None = None
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
        return self._tokens

    @property
    def positions(self) -> NDArray[np.int32]:
        """Where it goes."""
        self._catch_up()
        return self._positions

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
            self._tokens[:count] = self._aside[-1]
            self._positions[:count] += self._behind
            self._behind = 0

    def add(self, sequence: Sequence, *, needs_host: bool) -> int:
        """Give a sequence, of which only the last token is not fed, the next row."""
        self.settle()
        row = len(self.sequences)
        self.sequences.append(sequence)
        sequence.row = row
        self.tokens[row] = sequence.tokens[-1]
        self.positions[row] = sequence.fed
        self.ends[row] = sequence.end
        self.needs_host[row] = needs_host
        self._changed()
        return row

    def remove(self, sequence: Sequence) -> tuple[int, int]:
        """Take a sequence out; the row that is free, and the one whose holder takes it."""
        self.settle()
        row, last = sequence.row, len(self.sequences) - 1
        sequence.row = -1
        sequence.fed = int(self.positions[row])
        moved = self.sequences.pop()
        if row != last:
            self.sequences[row] = moved
            moved.row = row
            for array in self._arrays:
                array[row] = array[last]
        self._changed()
        return row, last

    def _changed(self) -> None:
        self.edition += 1
        self._forget()

    def _forget(self) -> None:
        self._bounds = self._spare = None

    def hold(self, row: int, pages: Items[int] | None, unit: int) -> None:
        """A row has these pages of `unit` tokens; None: it needs none."""
        self._spare = None
        if pages is None:
            self.room[row] = _UNBOUNDED
            return
        self.room[row] = len(pages) * unit
        self.pages[row, : len(pages)] = pages

    def hold_more(
        self,
        rows: NDArray[np.intp],
        places: NDArray[np.intp],
        pages: NDArray[np.intp],
        unit: int,
    ) -> None:
        """Rows [n] have pages [n] more, as their number `places` [n]; of one row in that order."""
        self._spare = None
        self.room[rows] = (places + 1) * unit
        self.pages[rows, places] = pages

    def advance(self, made: NDArray[np.generic]) -> None:
        """Each row has a token more, which goes in next; its sequence is not told."""
        self.settle()
        count = len(self.sequences)
        self.tokens[:count] = made
        self.positions[:count] += 1
        self._count_on()

    def set_aside(self, made: NDArray[np.generic]) -> None:
        """Each row has a token more, and its sequence."""
        self._aside.append(made)
        self._behind += 1
        if len(self._aside) == _MOST_ASIDE:
            self.settle()
        self._count_on()

    def _count_on(self) -> None:
        if self._bounds is not None:
            self._bounds.left -= 1
            self._bounds.longest += 1
        if self._spare is not None:
            self._spare -= 1

    def advance_one(self, row: int, token: int) -> None:
        """One row has a token more; its sequence is not told."""
        self.settle()
        self.tokens[row] = token
        self.positions[row] += 1
        self._forget()

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

    def slots(self, unit: int) -> NDArray[np.int32]:
        """Where each row's next token lies in a paged state."""
        count = len(self.sequences)
        at = self.positions[:count]
        page, inside = np.divmod(at, unit)
        found: NDArray[np.int32] = self.pages[self._each_row[:count], page] * unit + inside
        return found

    def short(self, ahead: int) -> list[Sequence]:
        """Those without a place for their next `ahead` tokens, as far as they have as many."""
        if self._spare is not None and ahead <= self._spare:
            return []
        count = len(self.sequences)
        at, needed, room = self.positions[:count], self.ends[:count] - 1, self.room[:count]
        self._spare = int((room - at).min(where=room < needed, initial=_UNBOUNDED))
        if ahead <= self._spare:
            return []
        short = np.flatnonzero(room < np.minimum(at + ahead, needed))
        return [self.sequences[row] for row in short]

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
