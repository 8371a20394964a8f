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

NEVER = 2**62
_MOST_ASIDE = 64


@dataclass(frozen=True, slots=True)
class Needs:
    """What a token of each row needs: their names in order, and the tokens that end any of them."""

    names: tuple[str, ...]
    stops: frozenset[int]


class Dues:
    """At which step something is due of each row; the first of them is looked for when asked."""

    __slots__ = ("_first", "each")

    def __init__(self) -> None:
        self.each: list[int] = []
        self._first: int | None = NEVER

    def add(self, step: int) -> None:
        """The next row's."""
        self.each.append(step)
        if self._first is not None and step < self._first:
            self._first = step

    def set(self, row: int, step: int) -> None:
        """A row's from now on."""
        self.each[row] = step
        self._first = None

    def remove(self, row: int) -> None:
        """A row leaves; the last takes its place."""
        if self.each[row] == self._first:
            self._first = None
        last = self.each.pop()
        if row < len(self.each):
            self.each[row] = last

    @property
    def first(self) -> int:
        """When it is due of one of them."""
        if self._first is None:
            self._first = min(self.each, default=NEVER)
        return self._first

    def until(self, step: int) -> list[int]:
        """The rows of which it is due by then."""
        return [row for row, at in enumerate(self.each) if at <= step] if self.first <= step else []


class Rows:
    """The sequences of a step, `most` of them, in pages of `unit` tokens where states are `paged`.

    `edition` counts the changes of who is there. What goes in of rows that belong to nobody lies in
    `pad`, a page, and in no line. `slow` of the sequences need the host between two steps, those
    that are `bound` by a constraint at each token.

    All rows go on together. Kernels leave nothing of ours in the host's caches, so a step touches
    what goes in and no more: tokens are set aside until somebody asks for them, and what comes to
    pass of a row at some step is known before. Whoever comes or goes touches no others.
    """

    def __init__(self, most: int, unit: int, pad: int = 0, *, paged: bool = True) -> None:
        self.sequences: list[Sequence] = []
        self.bound: list[Sequence] = []
        self.slow = 0
        self.edition = 0
        self._paged, self._unit = paged, unit
        self._idle = np.array([0, 0, 1, pad * unit], np.int32)
        self._next = np.repeat(self._idle[:, None], most, axis=1)
        self._names: list[str] = []
        self._pages: list[list[int]] = []
        self._stops: dict[frozenset[int], int] = {}
        self._any: frozenset[int] | None = frozenset()
        self._needs = Needs((), frozenset())
        self._needs_of = -1
        self._all: tuple[Sequence, ...] = ()
        self._all_of = -1
        self._taken = 0
        # the step at which each held nothing yet, had it always been there; makes its last token;
        # has no place for a token
        self._began, self._ends, self._full = Dues(), Dues(), Dues()
        # who goes on in another page at steps that leave the same of a page's tokens
        self._turns: list[list[Sequence]] = [[] for _ in range(unit if paged else 0)]
        self._made: NDArray[np.generic] = self._next[TOKEN]
        self._behind = 0
        self._aside: list[Items[int]] = []
        # of each row: its sequence has what was set aside before
        self._since: list[int] = []

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def tokens(self) -> NDArray[np.int32]:
        """What goes in next of each row."""
        tokens: NDArray[np.int32] = self.next()[TOKEN]
        return tokens

    @property
    def all(self) -> tuple[Sequence, ...]:
        """The sequences in order, the same object while nobody comes or goes."""
        if self._all_of != self.edition:
            self._all, self._all_of = tuple(self.sequences), self.edition
        return self._all

    def fed(self, sequence: Sequence) -> int:
        """How many tokens the states of one of them hold."""
        return self._taken - self._began.each[sequence.row]

    def held(self) -> list[tuple[Sequence, int]]:
        """Each with how many tokens its states hold."""
        self.settle()
        return [(sequence, self.fed(sequence)) for sequence in self.sequences]

    def settle(self) -> None:
        """Give the sequences their tokens that were set aside."""
        self.next()
        if not self._aside:
            return
        if any(self._since):
            for row in range(len(self.sequences)):
                self._settle_row(row)
        else:
            # who was last may have left since
            each = zip(*self._aside, strict=False)
            for sequence, tokens in zip(self.sequences, each, strict=False):
                sequence.tokens += tokens
        self._aside, self._since = [], [0] * len(self.sequences)

    def _settle_row(self, row: int) -> None:
        aside, since = self._aside, self._since[row]
        self.sequences[row].tokens += [aside[step][row] for step in range(since, len(aside))]
        self._since[row] = len(aside)

    # --- who comes and goes ---

    def add(self, sequence: Sequence, pages: Items[int]) -> int:
        """Give a sequence, of which only the last token is not fed, the next row."""
        row, at = len(self.sequences), sequence.fed
        self.sequences.append(sequence)
        self._names.append(sequence.id)
        self._pages.append([])
        self._since.append(len(self._aside))
        self._count(sequence.stops, 1)
        self.slow += sequence.slow
        if sequence.request.constraint is not None:
            self.bound.append(sequence)
        sequence.row = row
        self.next()[:, row] = sequence.tokens[-1], at, at + 1, at
        began = self._taken - at
        self._began.add(began)
        # a row at position p makes the token p + 1
        self._ends.add(began + sequence.end - 1)
        self._full.add(NEVER)
        if self._turns:
            self._turns[began % self._unit].append(sequence)
        self.grow(row, pages)
        self.edition += 1
        return row

    def remove(self, sequence: Sequence) -> tuple[int, int]:
        """Take a sequence out; the row that is free, and the one whose holder takes it."""
        values = self.next()
        row, last = sequence.row, len(self.sequences) - 1
        self._settle_row(row)
        sequence.fed = self.fed(sequence)
        sequence.row = -1
        if self._turns:
            self._turns[self._began.each[row] % self._unit].remove(sequence)
        if row != last:
            self._settle_row(last)
            self.sequences[row] = moved = self.sequences[last]
            self._names[row], self._pages[row] = self._names[last], self._pages[last]
            self._since[row] = self._since[last]
            moved.row = row
            values[:, row] = values[:, last]
        values[:, last] = self._idle
        del self.sequences[last], self._names[last], self._pages[last], self._since[last]
        for dues in (self._began, self._ends, self._full):
            dues.remove(row)
        self._count(sequence.stops, -1)
        self.slow -= sequence.slow
        if sequence.request.constraint is not None:
            self.bound.remove(sequence)
        self.edition += 1
        return row, last

    def grow(self, row: int, pages: Items[int]) -> None:
        """A row has pages more."""
        if not self._paged:
            return
        sequence, held = self.sequences[row], self._pages[row]
        waits = self.fed(sequence) >= len(held) * self._unit
        held += pages
        room = len(held) * self._unit
        if waits:
            self.next()
            self._turn(sequence)
        # the last token made is not fed back
        full = self._began.each[row] + room if room < sequence.most else NEVER
        self._full.set(row, full)

    def jump(self, sequence: Sequence, token: int, count: int) -> None:
        """A sequence has so many tokens more, the last of which goes in next; nobody else has."""
        row, at = sequence.row, self.fed(sequence) + count
        self.next()[:, row] = token, at, at + 1, at
        began = self._began.each[row] - count
        if self._turns:
            self._turns[self._began.each[row] % self._unit].remove(sequence)
            self._turns[began % self._unit].append(sequence)
        self._began.set(row, began)
        self._ends.set(row, began + sequence.end - 1)
        self.grow(row, ())
        if self._turns:
            self._turn(sequence)

    def slots(self, positions: NDArray[np.int32]) -> NDArray[np.int32]:
        """Where positions [n, each] of the first n rows lie; those of nobody in a page."""
        found = positions.copy()
        if self._paged:
            for row, pages in enumerate(self._pages):
                place, inside = np.divmod(positions[row], self._unit)
                found[row] = np.array(pages)[place] * self._unit + inside
            found[len(self) :] = self._idle[SLOT] + positions[len(self) :] % self._unit
        return found

    def _count(self, stops: frozenset[int], one: int) -> None:
        """One sequence more or less is ended by some tokens; most by the same."""
        there = self._stops.pop(stops, 0) + one
        if there:
            self._stops[stops] = there
        if there in {0, one}:
            self._any = None

    # --- a step ---

    def next(self) -> NDArray[np.int32]:
        """What goes in [4, most] with the next step. Rows that nobody has are the last."""
        if self._behind:
            count = len(self._made)
            self._next[TOKEN, :count] = self._made
            self._next[POSITION:, :count] += self._behind
            first, self._behind = self._taken - self._behind + 1, 0
            for step in range(first, self._taken + 1) if self._turns else ():
                for sequence in self._turns[step % self._unit]:
                    self._turn(sequence)
        return self._next

    def _turn(self, sequence: Sequence) -> None:
        """A sequence goes on in another page, from now or a few steps ago on."""
        place, inside = divmod(self.fed(sequence), self._unit)
        pages = self._pages[sequence.row]
        if place < len(pages):
            self._next[SLOT, sequence.row] = pages[place] * self._unit + inside

    def set_aside(self, made: NDArray[np.generic], tokens: Items[int]) -> None:
        """Each row has a token more, and its sequence: those made, and the same as `tokens`."""
        self._made = made
        self._aside.append(tokens)
        self._behind += 1
        self._taken += 1
        if len(self._aside) == _MOST_ASIDE:
            self.settle()

    def take_back(self, sequence: Sequence) -> None:
        """The last token that a sequence was given is none of it."""
        self._settle_row(sequence.row)
        sequence.tokens.pop()

    # --- what holds for all ---

    def needs(self) -> Needs:
        """What a token of each row needs."""
        if self._needs_of != self.edition:
            self._needs_of = self.edition
            if self._any is None:
                self._any = frozenset[int]().union(*self._stops)
            self._needs = Needs(tuple(self._names), self._any)
        return self._needs

    def places_in(self, sequences: Items[Sequence]) -> list[int]:
        """Which of some sequences each row's is."""
        places = {sequence.order: place for place, sequence in enumerate(sequences)}
        return [places[sequence.order] for sequence in self.sequences]

    def complete(self) -> list[Sequence]:
        """Those whose last token has been made."""
        return [self.sequences[row] for row in self._ends.until(self._taken)]

    def short(self, ahead: int) -> list[Sequence]:
        """Those without a place for their next `ahead` tokens, as far as they have as many."""
        return [self.sequences[row] for row in self._full.until(self._taken + ahead - 1)]

    def steps_left(self) -> int:
        """How many steps until the first of them has made its last token."""
        return self._ends.first - self._taken

    def longest(self) -> int:
        """How many tokens the states of the longest hold once the next step is in."""
        return self._taken - self._began.first + 1
