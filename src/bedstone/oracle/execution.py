"""The bytes a schedule runs on, as its buffers name them.

One arena, read and written by offsets, through views and quantized forms, in float32. Memory that
nobody has written is NaN.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.graph.step import AtParam, RowSel
from bedstone.lane.launch import Columns, Dst, Read, ToBuf, ToEach, ToRows, ToScratch, Window
from bedstone.lane.schedule import QBLOCK, Buffer, QuantSlots, Schedule, Slot
from bedstone.oracle.draw import Wish
from bedstone.oracle.quantized import dequantize, quantize

Array = NDArray[Any]


class Execution:
    """What the launches of a schedule read and write while it runs.

    `constants` hold each constant's values as float32; `tables` the carried tables, which schedules
    of several forms of one model share. `wishes` are what a step that draws its tokens is asked,
    for each sequence: greedy without any.
    """

    def __init__(
        self,
        schedule: Schedule,
        constants: Mapping[str, Array],
        *,
        tables: dict[str, Array] | None = None,
    ) -> None:
        self.schedule = schedule
        self.tables = {} if tables is None else tables
        self.next_ids: dict[str, list[int]] = {}
        self.next_params: dict[str, int] = {}
        self.params: Mapping[str, int] = {}
        self.wishes: Sequence[Wish] = ()
        self.constants = {name: np.asarray(constants[name], np.float32) for name in schedule.consts}
        self._ids: dict[str, Array] = {}
        self._arena = np.full(schedule.arena_bytes, 0xFF, np.uint8)
        for table in schedule.tables.values():
            if not table.scratch and table.name not in self.tables:
                empty = 0.0 if table.zeros else np.nan
                shape = (table.capacity, table.width)
                self.tables[table.name] = np.full(shape, empty, np.float32)

    def values(self, tensor: str) -> Array:
        """The values of a tensor where they lie, its rows of this step only.

        Those of a part of a wider tensor are a copy.
        """
        if tensor in self._ids:
            return self._ids[tensor]
        buffer = self.schedule.buffers[tensor]
        home = buffer if buffer.view_of is None else self.schedule.buffers[buffer.view_of]
        if home.f32 is None:
            raise CallerError(f"`{tensor}` has no values in memory")
        flat = self._at(home.f32, np.int32 if buffer.dtype == "i32" else np.float32)
        return self._seen(flat, buffer, buffer.offset, 1)

    def _seen(self, flat: Array, buffer: Buffer, start: int, per: int) -> Array:
        """The rows of a tensor in memory that holds one item for each `per` values."""
        rows, width = self.rows(buffer), buffer.width // per
        window = buffer.window
        if window is None:
            return flat[start // per : start // per + rows * width].reshape(rows, width)
        return flat[start // per + window_indices(window, rows, width, per)]

    def quant(self, tensor: str) -> tuple[Array, Array, Array]:
        """The codes, scales and sums of a tensor's rows, where they lie."""
        buffer = self.schedule.buffers[tensor]
        home = buffer
        if buffer.quant is None and buffer.view_of is not None:
            home = self.schedule.buffers[buffer.view_of]
        if home.quant is None:
            raise CallerError(f"`{tensor}` has no quantized form in memory")
        if home is not buffer:
            codes, scales, sums = self._pieces(home.quant)
            return (
                self._seen(codes, buffer, buffer.offset, 1),
                self._seen(scales, buffer, buffer.offset, QBLOCK),
                self._seen(sums, buffer, buffer.offset, QBLOCK),
            )
        rows, width = self.rows(buffer), buffer.width
        return self._shaped(home.quant, 0, rows, width)

    def _pieces(self, slots: QuantSlots) -> tuple[Array, Array, Array]:
        if slots.scales is None or slots.sums is None:
            raise CallerError("expected codes of 8 bits, found codes without scales")
        return (
            self._at(slots.codes, np.int8),
            self._at(slots.scales, np.float32),
            self._at(slots.sums, np.int32),
        )

    def _shaped(
        self, slots: QuantSlots, start: int, rows: int, width: int
    ) -> tuple[Array, Array, Array]:
        def piece(flat: Array, per: int) -> Array:
            return flat[start // per : (start + rows * width) // per].reshape(rows, width // per)

        codes, scales, sums = self._pieces(slots)
        return piece(codes, 1), piece(scales, QBLOCK), piece(sums, QBLOCK)

    def _at(self, slot: Slot, dtype: type[np.generic]) -> Array:
        return self._arena[slot.offset : slot.end].view(dtype)

    def rows(self, buffer: Buffer) -> int:
        """The rows of a tensor that hold something in this step."""
        if buffer.live is not None:
            return self.params[buffer.live]
        count = self.schedule.row_count(buffer.rows)
        return self.params[count] if isinstance(count, str) else count

    def read(self, read: Read) -> Array:
        """A copy of what a launch reads; sums that belong to other codes spoil it."""
        if read.form == "f32":
            x = self.values(read.tensor).copy()
        else:
            codes, scales, sums = self.quant(read.tensor)
            blocks = codes.reshape(*sums.shape, QBLOCK).sum(axis=-1, dtype=np.int32)
            x = dequantize(codes, scales, np.dtype(np.float32))
            x = x if np.array_equal(blocks, sums) else np.full_like(x, np.nan)
        return x if read.row is None else x[read.row : read.row + 1]

    def write(self, dst: Dst, y: Array) -> None:
        """Put a result where it goes, in the forms that are asked for."""
        match dst:
            case ToRows(table, at, _, columns):
                start = self.start(at, len(y))
                first, end = _columns(columns, y.shape[1])
                self.tables[table][start : start + len(y), first:end] = y
            case ToEach(rows):
                for row, to in enumerate(rows):
                    self.write(to, y[row : row + 1])
            case ToBuf(tensor, f32, quant):
                if f32:
                    self.values(tensor)[:] = y
                if quant:
                    self._quantize(y, self.quant(tensor))
            case ToScratch(table, row, _, f32, quant):
                home = self.schedule.buffers[table]
                if f32:
                    self.values(table)[row : row + len(y)] = y
                if quant and home.quant is not None:
                    self._quantize(y, self._shaped(home.quant, row * home.width, *y.shape))

    def _quantize(self, x: Array, into: tuple[Array, Array, Array]) -> None:
        codes, scales, sums = into
        codes[:], scales[:] = quantize(x)
        sums[:] = codes.reshape(*sums.shape, QBLOCK).sum(axis=-1, dtype=np.int32)

    def start(self, at: RowSel, rows: int) -> int:
        """The first of `rows` rows at a place."""
        return self.params[at.param] - rows if isinstance(at, AtParam) else at.row


def window_indices(window: Window, rows: int, width: int, per: int = 1) -> NDArray[np.intp]:
    """Where the items of a part lie, counted from its first: an item for each `per` values."""
    items = np.arange(width)
    unit = window.width // per
    along = items // unit * (window.unit // per) + items % unit
    return np.arange(rows)[:, None] * (window.row // per) + along


def _columns(columns: Columns | None, width: int) -> tuple[int, int]:
    return (0, width) if columns is None else (columns.first, columns.first + width)
