"""What a step of many sequences is made of, as arrays: a row a sequence.

An input with an entry for each sequence of a step is *kept*: what changed since the last call is
written, and no more. Rows are always the first of the arrays; where one leaves, the last takes its
place.
"""

from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.ports import Input
from bedstone.serve.engine.sequence import Sequence
from bedstone.verify.protocol import LineTable, PageTable


class Kept(Protocol):
    """An input that holds something for each row, as the device has it or soon will."""

    def set(self, row: int, value: NDArray[np.generic] | float) -> None:
        """What a row holds from now on."""

    def move(self, source: int, target: int) -> None:
        """A row holds what another held."""

    def lend(self, value: NDArray[np.generic] | float) -> None:
        """Write it as the first row for a call of one sequence."""

    def flush(self, rows: int) -> None:
        """Write what changed of the first `rows`."""


class Entries:
    """An input whose first dimension counts the rows."""

    def __init__(self, target: Input) -> None:
        self._target = target
        self._values = target.values
        self._unchanged = len(self._values), 0
        self._low, self._high = self._unchanged

    def set(self, row: int, value: NDArray[np.generic] | float) -> None:
        """Remember, to be written before the next step."""
        self._values[row] = value
        self._change(row)

    def move(self, source: int, target: int) -> None:
        """Remember the copy."""
        self._values[target] = self._values[source]
        self._change(target)

    def lend(self, value: NDArray[np.generic] | float) -> None:
        """Write the first row; its own is written again before the next step."""
        own = self._values[0].copy()
        self._values[0] = value
        try:
            self._target.write(1)
        finally:
            self._values[0] = own
            self._change(0)

    def flush(self, rows: int) -> None:
        """Write from the first to the last that changed."""
        high = min(self._high, rows)
        if self._low < high:
            self._target.write(high - self._low, self._low)
        # what is left may be read by a call of more rows that belong to nobody
        left = self._high > rows
        self._low, self._high = (max(self._low, rows), self._high) if left else self._unchanged

    def _change(self, row: int) -> None:
        self._low, self._high = min(self._low, row), max(self._high, row + 1)


class Fronts:
    """An input with many numbers a row, of which the first few are a sequence's, often none."""

    def __init__(self, target: Input) -> None:
        self._target = target
        self._values = target.values
        self._width = target.values[0].size
        self._used = [0] * len(target.values)
        self._changed: set[int] = set()

    def set(self, row: int, value: NDArray[np.generic] | float) -> None:
        """Remember numbers, to be written before the next step; an empty array is none."""
        count = self._put(row, value)
        self._used[row] = count
        self._changed.add(row)

    def poke(self, row: int, column: int, value: float) -> None:
        """Set one number of a row, and write it at once where the rest is written already."""
        self._values[row, column] = value
        self._used[row] = max(self._used[row], column + 1)
        if row not in self._changed:
            self._target.write_elements(row * self._width + column, 1)

    def move(self, source: int, target: int) -> None:
        """Remember the copy."""
        self.set(target, self._values[source, : self._used[source]])

    def lend(self, value: NDArray[np.generic] | float) -> None:
        """Write the first row; its own is written again before the next step."""
        own = self._values[0, : np.size(value)].copy()
        count = self._put(0, value)
        try:
            self._target.write_elements(0, count)
        finally:
            self._put(0, own)
            self._changed.add(0)

    def flush(self, rows: int) -> None:
        """Write the rows that changed, each as far as it is used."""
        left = set()
        for row in self._changed:
            if row >= rows:
                left.add(row)
            elif self._used[row]:
                self._target.write_elements(row * self._width, self._used[row])
        self._changed = left

    def _put(self, row: int, value: NDArray[np.generic] | float) -> int:
        count = np.size(value)
        self._values[row, :count] = value
        return count


class Lines:
    """A line table: its columns count the rows, what it holds of one is its slot."""

    def __init__(self, target: Input, table: LineTable) -> None:
        self._target = target
        self._lines = np.arange(table.lines, dtype=np.int32)
        self._each = table.lines_per_slot
        self._values = target.values.reshape(table.lines, -1, table.width)
        self._values[:] = self._lines[:, None, None]
        self._changed = True

    def set(self, row: int, value: NDArray[np.generic] | float) -> None:
        """Remember, to be written before the next step."""
        lines = np.int32(value) * self._each + self._lines
        self._values[:, row] = lines[:, None]
        self._changed = True

    def move(self, source: int, target: int) -> None:
        """Remember the copy."""
        self._values[:, target] = self._values[:, source]
        self._changed = True

    def lend(self, value: NDArray[np.generic] | float) -> None:
        """Write the first column; its own is written again before the next step."""
        own = self._values[:, 0].copy()
        self.set(0, value)
        try:
            self._target.write(len(self._target.values))
        finally:
            self._values[:, 0] = own

    def flush(self, _rows: int) -> None:
        """Write all of it, if anything changed."""
        if self._changed:
            self._target.write(len(self._target.values))
            self._changed = False


@dataclass(frozen=True, slots=True)
class Plain:
    """What a token of each row needs, in their order: names, where tokens go, which end it."""

    names: list[str]
    appends: list[Callable[[int], None]]
    stops: list[frozenset[int]]


class Rows:
    """The sequences of a step. `tokens` go in next, at `positions`; `room` tokens have a place.

    `pages` are in the order a sequence fills them; `ends` is how many tokens there are once the
    last has been made. `edition` counts the changes of who is there.
    """

    def __init__(self, most: int, pages: int) -> None:
        self.sequences: list[Sequence] = []
        self.edition = 0
        self.tokens = np.zeros(most, np.int32)
        self.positions = np.zeros(most, np.int32)
        self.room = np.zeros(most, np.int64)
        self.ends = np.zeros(most, np.int64)
        self.needs_host = np.zeros(most, bool)
        self.pages = np.zeros((most, max(1, pages)), np.int32)
        self._arrays = (
            self.tokens,
            self.positions,
            self.room,
            self.ends,
            self.needs_host,
            self.pages,
        )
        self._each_row = np.arange(most)
        self._plain: Plain | None = None
        self._plain_of = -1

    def __len__(self) -> int:
        return len(self.sequences)

    def add(self, sequence: Sequence, *, needs_host: bool) -> int:
        """Give a sequence, of which only the last token is not fed, the next row."""
        row = len(self.sequences)
        self.sequences.append(sequence)
        sequence.row = row
        self.tokens[row] = sequence.tokens[-1]
        self.positions[row] = sequence.fed
        self.ends[row] = sequence.end
        self.needs_host[row] = needs_host
        self.edition += 1
        return row

    def remove(self, sequence: Sequence) -> tuple[int, int]:
        """Take a sequence out; the row that is free, and the one whose holder takes it."""
        row, last = sequence.row, len(self.sequences) - 1
        sequence.row = -1
        sequence.fed = int(self.positions[row])
        moved = self.sequences.pop()
        if row != last:
            self.sequences[row] = moved
            moved.row = row
            for array in self._arrays:
                array[row] = array[last]
        self.edition += 1
        return row, last

    def advance(self, made: NDArray[np.generic]) -> None:
        """Each row has a token more: what goes in next."""
        count = len(self.sequences)
        self.tokens[:count] = made
        self.positions[:count] += 1

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
                    [each.id for each in rows],
                    [each.tokens.append for each in rows],
                    [each.stops for each in rows],
                )
            )
        return self._plain

    def complete(self) -> list[Sequence]:
        """Those whose last token has been made."""
        count = len(self.sequences)
        done = np.flatnonzero(self.positions[:count] + 1 >= self.ends[:count])
        return [self.sequences[row] for row in done]

    def held(self) -> list[tuple[Sequence, int]]:
        """Each with how many tokens its states hold."""
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
        count = len(self.sequences)
        wanted = np.minimum(self.positions[:count] + ahead, self.ends[:count] - 1)
        return [self.sequences[row] for row in np.flatnonzero(self.room[:count] < wanted)]

    def steps_left(self) -> int:
        """How many steps until the first of them has made its last token."""
        count = len(self.sequences)
        # a row at position p makes the token p + 1
        return int((self.ends[:count] - self.positions[:count]).min()) - 1


def table_row(table: PageTable, pages: Items[int], unit: int) -> NDArray[np.int32]:
    """The table's row for pages of `unit` tokens, its first entry repeated past the last."""
    each = unit // table.tokens
    row = np.repeat(np.array(pages, np.int32) * each, each)
    if each > 1:
        row += np.tile(np.arange(each, dtype=np.int32), len(pages))
    found = np.full(table.pages, row[0], np.int32)
    found[: len(row)] = row[: table.pages]
    return found
