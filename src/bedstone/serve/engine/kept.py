"""Inputs with an entry for each sequence of a step, as arrays: a row a sequence.

Such an input is *kept*: what changed since the last call is written, and no more.
"""

from collections.abc import Sequence as Items
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.device import Places
from bedstone.runtime.ports import Input
from bedstone.verify.protocol import LineTable, PageTable


class Kept(Protocol):
    """An input that holds something for each row, as the device has it or soon will."""

    def set(self, row: int, value: Any) -> None:  # noqa: ANN401 - each input has its own
        """What a row holds from now on."""

    def move(self, source: int, target: int) -> None:
        """A row holds what another held."""

    def lend(self, value: Any) -> None:  # noqa: ANN401 - each input has its own
        """Write it as the first row for a call of one sequence."""

    def flush(self, rows: int) -> bool:
        """Write what changed of the first `rows`; whether anything did of others."""


class Changed:
    """The kept inputs of which something is to be written."""

    def __init__(self) -> None:
        self._kept: set[Kept] = set()

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, kept: Kept) -> None:
        """Something of it changed."""
        self._kept.add(kept)

    def flush(self, rows: int) -> None:
        """Write what changed of the first `rows` of each."""
        if self._kept:
            self._kept = {kept for kept in self._kept if kept.flush(rows)}


class Entries:
    """An input with a number for each row. What it held before is not known.

    Most sequences ask for the same numbers: one that a row has already is not written again. What
    goes in is checked when it is said.
    """

    def __init__(self, target: Input, changed: Changed) -> None:
        self._target = target
        self._changed = changed
        self._values = target.values
        self._unchanged = len(self._values), 0
        self._low, self._high = self._unchanged
        self._change(0, len(self._values) - 1)

    def set(self, row: int, value: Any) -> None:  # noqa: ANN401 - what a row is said to hold
        """Remember, to be written before the next step."""
        if not self._has(row, value):
            self._put(row, value)
            self._change(row, row)

    def set_each(self, rows: NDArray[np.intp], values: Items[int]) -> None:
        """Remember a value [n] for each of some rows [n], in their order."""
        self._target.require_between(min(values), max(values))
        self._values[rows] = values
        self._change(int(rows[0]), int(rows[-1]))

    def move(self, source: int, target: int) -> None:
        """Remember the copy."""
        if not self._has(target, self._values[source]):
            self._values[target] = self._values[source]
            self._change(target, target)

    def lend(self, *values: Any) -> None:  # noqa: ANN401 - what a row is said to hold
        """Write the first rows; their own are written again before the next step."""
        if self._low >= len(values) and all(map(self._has, count(), values)):
            return
        own = self._values[: len(values)].copy()
        try:
            for row, value in enumerate(values):
                self._put(row, value)
            self._target.copy(len(values))
        finally:
            self._values[: len(values)] = own
            self._change(0, len(values) - 1)

    def flush(self, _rows: int) -> bool:
        """Write from the first to the last that changed."""
        if self._low < self._high:
            self._target.copy(self._high - self._low, self._low)
        self._low, self._high = self._unchanged
        return False

    def _has(self, row: int, value: float) -> bool:
        return bool(self._values[row] == value)

    def _put(self, row: int, value: float) -> None:
        self._target.require_between(value, value)
        self._values[row] = value

    def _change(self, first: int, last: int) -> None:
        self._low, self._high = min(self._low, first), max(self._high, last + 1)
        self._changed.add(self)


class Pages(Entries):
    """A page table, what a row is said to hold being the pages of a lease.

    Those are `unit` tokens, so many of the table's each; its first entry is repeated past the last.
    """

    def __init__(self, target: Input, changed: Changed, table: PageTable, unit: int) -> None:
        super().__init__(target, changed)
        self._each = unit // table.tokens
        self._parts = np.arange(self._each, dtype=np.int32)

    def grow(
        self, rows: NDArray[np.intp], places: NDArray[np.intp], pages: NDArray[np.intp]
    ) -> None:
        """Rows [n] have pages [n] more, as their number `places` [n]."""
        columns, entries = self._entries(places), self._entries(pages)
        self._target.require_inside(entries)
        held = columns < self._values.shape[1]
        each = np.broadcast_to(rows[:, None], columns.shape)
        self._values[each[held], columns[held]] = entries[held]
        self._change(int(rows.min()), int(rows.max()))

    def _has(self, _row: int, _value: object) -> bool:
        return False

    def _put(self, row: int, pages: Items[int]) -> None:  # type: ignore[override]
        held = self._values[row]
        self._target.require_between(min(pages) * self._each, (max(pages) + 1) * self._each - 1)
        some = pages if self._each == 1 else self._entries(np.array(pages)).reshape(-1)
        count = min(len(some), len(held))
        held[:count] = some[:count]
        held[count:] = pages[0] * self._each

    def _entries(self, pages: NDArray[np.intp]) -> NDArray[np.intp]:
        """The entries [n, each] for pages [n]."""
        return pages[:, None] * self._each + self._parts


class Fronts:
    """An input with many numbers a row, of which the first few are a sequence's, often none."""

    def __init__(self, target: Input, changed: Changed) -> None:
        self._target = target
        self._values = target.values
        self._width = target.values[0].size
        self._used = np.zeros(len(target.values), np.intp)
        self._rows: set[int] = set()
        self._changed = changed

    def set(self, row: int, value: NDArray[np.generic] | float) -> None:
        """Remember numbers, to be written before the next step; an empty array is none."""
        count = self._used[row] = self._put(row, value)
        if count:
            self._change(row)

    def put(self, places: Places, values: NDArray[np.generic]) -> None:
        """Write numbers [n] that may go in, at once."""
        self._target.put_places(places, values)

    def use(self, rows: NDArray[np.intp], counts: Items[int]) -> None:
        """How many numbers of some rows [n] are a sequence's."""
        self._used[rows] = counts

    def move(self, source: int, target: int) -> None:
        """Remember the copy."""
        self.set(target, self._values[source, : self._used[source]])

    def lend(self, value: NDArray[np.generic] | float) -> None:
        """Write the first row; its own is written again before the next step."""
        if not np.size(value):
            return
        own = self._values[0, : np.size(value)].copy()
        count = self._put(0, value)
        try:
            self._target.write_elements(0, count)
        finally:
            self._put(0, own)
            self._change(0)

    def flush(self, rows: int) -> bool:
        """Write the rows that changed, each as far as it is used."""
        left = set()
        for row in self._rows:
            if row >= rows:
                left.add(row)
            elif self._used[row]:
                self._target.write_elements(row * self._width, int(self._used[row]))
        self._rows = left
        return bool(left)

    def _change(self, row: int) -> None:
        self._rows.add(row)
        self._changed.add(self)

    def _put(self, row: int, value: NDArray[np.generic] | float) -> int:
        count = np.size(value)
        self._values[row, :count] = value
        return count


class Lines:
    """A line table: its columns count the rows, what it holds of one is its slot."""

    def __init__(self, target: Input, changed: Changed, table: LineTable) -> None:
        self._target = target
        self._lines = np.arange(table.lines, dtype=np.int32)
        self._each = table.lines_per_slot
        self._values = target.values.reshape(table.lines, -1, table.width)
        self._values[:] = self._lines[:, None, None]
        self._changed = changed
        changed.add(self)

    def set(self, row: int, value: NDArray[np.generic] | float) -> None:
        """Remember, to be written before the next step."""
        first = int(value) * self._each
        self._target.require_between(first, first + len(self._lines) - 1)
        self._values[:, row] = (self._lines + first)[:, None]
        self._changed.add(self)

    def move(self, source: int, target: int) -> None:
        """Remember the copy."""
        self._values[:, target] = self._values[:, source]
        self._changed.add(self)

    def lend(self, *values: float) -> None:
        """Write the first columns; their own are written again before the next step."""
        own = self._values[:, : len(values)].copy()
        try:
            for row, value in enumerate(values):
                self.set(row, value)
            self._target.copy(len(self._target.values))
        finally:
            self._values[:, : len(values)] = own

    def flush(self, _rows: int) -> bool:
        """Write all of it."""
        self._target.copy(len(self._target.values))
        return False
