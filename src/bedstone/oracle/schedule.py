"""An interpreter of a Schedule: every launch executed literally, on the bytes its buffers name.

It reads and writes one arena by offsets, through views and quantized forms, in float32, so a defect
of a plan shows without a kernel. Memory that nobody has written is NaN.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.graph import step
from bedstone.graph.step import AtParam, Out, Ref, RowSel
from bedstone.lane.launch import (
    ArgMax,
    Attention,
    Dst,
    Eltwise,
    Embed,
    Glu,
    Launch,
    Matrix,
    Norm,
    Parts,
    Product,
    Quantize,
    Read,
    Rope,
    RopeSide,
    SetRows,
    TakeRow,
    ToBuf,
    ToRows,
    ToScratch,
)
from bedstone.lane.schedule import QBLOCK, QuantSlots, Schedule, Slot
from bedstone.oracle import arithmetic
from bedstone.oracle.quantized import dequantize, quantize

Array = NDArray[Any]

_X, _W, _Y = Ref("x"), Ref("w"), Out("y")


class ScheduleOracle:
    """Runs a schedule step after step.

    `constants` hold each constant's values as float32, [n, k] or [n]; `tables` the carried tables,
    which schedules of several forms of one model share. After a step `next_ids` and `next_params`
    hold what its arg-max wrote for the decode step that follows.
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
        self._constants = {
            name: np.asarray(constants[name], np.float32) for name in schedule.consts
        }
        self._arena = np.full(schedule.arena_bytes, 0xFF, np.uint8)
        self._ids: dict[str, Array] = {}
        self._params: Mapping[str, int] = {}
        for table in schedule.tables.values():
            if not table.scratch and table.name not in self.tables:
                shape = (table.capacity, table.width)
                self.tables[table.name] = np.full(shape, np.nan, np.float32)

    def run(self, ids: Mapping[str, Sequence[int]], params: Mapping[str, int]) -> dict[str, Array]:
        """One step: `ids` for each carried vector, a value for each param. The step's outputs."""
        self._ids = {name: np.asarray(row, np.int32).reshape(-1, 1) for name, row in ids.items()}
        self._params = params
        self._arena[:] = 0xFF
        self.next_ids, self.next_params = {}, {}
        for each in self.schedule.steps:
            _RUNS[type(each.launch)](self, each.launch)
        return {name: self.values(name).copy() for name in self.schedule.outputs}

    def values(self, tensor: str) -> Array:
        """The values of a tensor where they lie, its rows of this step only."""
        if tensor in self._ids:
            return self._ids[tensor]
        buffer = self.schedule.buffers[tensor]
        home = buffer if buffer.view_of is None else self.schedule.buffers[buffer.view_of]
        if home.f32 is None:
            raise CallerError(f"`{tensor}` has no values in memory")
        flat = self._at(home.f32, np.int32 if buffer.dtype == "i32" else np.float32)
        start = buffer.offset
        rows = self._rows(buffer.rows)
        return flat[start : start + rows * buffer.width].reshape(rows, buffer.width)

    def _quant(self, tensor: str) -> tuple[Array, Array, Array]:
        """The codes, scales and sums of a tensor's rows, where they lie."""
        buffer = self.schedule.buffers[tensor]
        home = buffer
        if buffer.quant is None and buffer.view_of is not None:
            home = self.schedule.buffers[buffer.view_of]
        if home.quant is None:
            raise CallerError(f"`{tensor}` has no quantized form in memory")
        start = 0 if home is buffer else buffer.offset
        return self._pieces(home.quant, start, self._rows(buffer.rows), buffer.width)

    def _pieces(
        self, slots: QuantSlots, start: int, rows: int, width: int
    ) -> tuple[Array, Array, Array]:
        def piece(slot: Slot, dtype: type[np.generic], per: int) -> Array:
            flat = self._at(slot, dtype)[start // per : (start + rows * width) // per]
            return flat.reshape(rows, width // per)

        return (
            piece(slots.codes, np.int8, 1),
            piece(slots.scales, np.float32, QBLOCK),
            piece(slots.sums, np.int32, QBLOCK),
        )

    def _at(self, slot: Slot, dtype: type[np.generic]) -> Array:
        return self._arena[slot.offset : slot.end].view(dtype)

    def _rows(self, most: int) -> int:
        count = self.schedule.row_count(most)
        return self._params[count] if isinstance(count, str) else count

    def _read(self, read: Read) -> Array:
        """A copy of what a launch reads; sums that belong to other codes spoil it."""
        if read.form == "f32":
            return self.values(read.tensor).copy()
        codes, scales, sums = self._quant(read.tensor)
        blocks = codes.reshape(*sums.shape, QBLOCK).sum(axis=-1, dtype=np.int32)
        x: Array = dequantize(codes, scales, np.dtype(np.float32))
        return x if np.array_equal(blocks, sums) else np.full_like(x, np.nan)

    def _write(self, dst: Dst, y: Array) -> None:
        match dst:
            case ToRows(table, at, _):
                start = self._start(at, len(y))
                self.tables[table][start : start + len(y)] = y
            case ToBuf(tensor, f32, quant):
                if f32:
                    self.values(tensor)[:] = y
                if quant:
                    self._quantize(y, self._quant(tensor))
            case ToScratch(table, row, _, f32, quant):
                home = self.schedule.buffers[table]
                if f32:
                    self.values(table)[row : row + len(y)] = y
                if quant and home.quant is not None:
                    self._quantize(y, self._pieces(home.quant, row * home.width, *y.shape))

    def _quantize(self, x: Array, into: tuple[Array, Array, Array]) -> None:
        codes, scales, sums = into
        with np.errstate(invalid="ignore"):  # unwritten memory: the scale carries its NaN on
            codes[:], scales[:] = quantize(x)
        sums[:] = codes.reshape(*sums.shape, QBLOCK).sum(axis=-1, dtype=np.int32)

    def _start(self, at: RowSel, rows: int) -> int:
        return self._params[at.param] - rows if isinstance(at, AtParam) else at.row

    # --- launches ----------------------------------------------------------------------------

    def embed(self, launch: Embed) -> None:
        """Rows of a table by id."""
        ids = self._read(launch.ids)[:, 0]
        self._write(launch.dst, self._constants[launch.table.const][ids])

    def norm(self, launch: Norm) -> None:
        """A norm, of a sum where there is one."""
        x = self._read(launch.x)
        if launch.add is not None and launch.sum is not None:
            x = x + self._read(launch.add)
            self._write(launch.sum, x)
        op = step.Norm(_X, _W, _Y, launch.eps, launch.unit, launch.plus_one)
        self._write(launch.dst, arithmetic.norm(x, self._constants[launch.w], op))

    def quantize(self, launch: Quantize) -> None:
        """The quantized form of a tensor."""
        self._write(launch.dst, self._read(launch.x))

    def _linear(self, x: Array, m: Matrix, bias: str | None = None) -> Array:
        y: Array = x @ self._constants[m.const].T
        return y if bias is None else y + self._constants[bias]

    def product(self, launch: Product) -> None:
        """One product."""
        self._write(launch.dst, self._linear(self._read(launch.x), launch.m, launch.bias))

    def parts(self, launch: Parts) -> None:
        """Several products of one input."""
        x = self._read(launch.x)
        results = [self._linear(x, part.m, part.bias) for part in launch.parts]
        for part, y in zip(launch.parts, results, strict=True):
            self._write(part.dst, y)

    def glu(self, launch: Glu) -> None:
        """A gated product."""
        x = self._read(launch.x)
        gate = arithmetic.ACTIVATIONS[launch.act](self._linear(x, launch.gate))
        self._write(launch.dst, gate * self._linear(x, launch.up))

    def rope(self, launch: Rope) -> None:
        """Rotations, each after its norm."""
        results = [self._turned(side, launch) for side in launch.sides]
        for side, y in zip(launch.sides, results, strict=True):
            self._write(side.dst, y)

    def _turned(self, side: RopeSide, launch: Rope) -> Array:
        x = self._read(side.x)
        if side.norm is not None:
            norm = step.Norm(_X, _W, _Y, side.norm.eps, launch.head_dim, side.norm.plus_one)
            x = arithmetic.norm(x, self._constants[side.norm.w], norm)
        sizes = (side.heads, launch.head_dim, launch.rot)
        op = step.Rope(_X, _Y, launch.table, launch.pos, *sizes, launch.kind)
        return arithmetic.rope(x, op, self.schedule.ropes[launch.table], self._params[launch.pos])

    def set_rows(self, launch: SetRows) -> None:
        """Rows into a table."""
        self._write(launch.dst, self._read(launch.x))

    def attention(self, launch: Attention) -> None:
        """Attention over the carried tables."""
        length = self._params[launch.pos]
        keys, values = self.tables[launch.k.table], self.tables[launch.v.table]
        sizes = (launch.heads, launch.groups, launch.dk, launch.dv)
        rest = (launch.scale, launch.window, launch.softcap)
        op = step.Attention(_X, Ref("k"), Ref("v"), _Y, launch.pos, *sizes, *rest)
        cache = arithmetic.Cache(keys, values, length)
        self._write(launch.dst, arithmetic.attention(self._read(launch.q), cache, op))

    def take_row(self, launch: TakeRow) -> None:
        """One row of a tensor."""
        row = self._start(launch.at, 1)
        self._write(launch.dst, self._read(launch.x)[row : row + 1])

    def argmax(self, launch: ArgMax) -> None:
        """The largest value's index, and what the next decode step reads."""
        best = np.argmax(self._read(launch.x), axis=-1).astype(np.int32)
        self._write(launch.dst, best[:, None])
        for advance in launch.advances:
            tokens = self.next_ids.setdefault(advance.token, [0] * len(best))
            tokens[advance.item] = int(best[advance.item])
            self.next_params[advance.pos] = self._params[advance.pos] + 1

    def eltwise(self, launch: Eltwise) -> None:
        """A function of one tensor or two."""
        a = self._read(launch.a)
        second = None if launch.b is None else self._read(launch.b)
        if launch.row is not None:
            second = self._constants[launch.row]
        self._write(launch.dst, _elementwise(launch, a, second))


def _elementwise(launch: Eltwise, a: Array, b: Array | None) -> Array:
    y: Array
    match launch.fn:
        case "add" | "add_row" if b is not None:
            y = a + b
        case "mul" if b is not None:
            y = a * b
        case "scale" if launch.by is not None:
            y = a * np.float32(launch.by)
        case "softcap" if launch.by is not None:
            y = arithmetic.softcap(a, launch.by)
        case "silu" | "gelu_tanh" | "sigmoid" | "softplus":
            y = arithmetic.ACTIVATIONS[launch.fn](a)
        case fn:
            raise CallerError(f"elementwise `{fn}` lacks an operand")
    return y


_RUNS: dict[type[Launch], Callable[[ScheduleOracle, Any], None]] = {
    Embed: ScheduleOracle.embed,
    Norm: ScheduleOracle.norm,
    Quantize: ScheduleOracle.quantize,
    Product: ScheduleOracle.product,
    Parts: ScheduleOracle.parts,
    Glu: ScheduleOracle.glu,
    Rope: ScheduleOracle.rope,
    SetRows: ScheduleOracle.set_rows,
    Attention: ScheduleOracle.attention,
    TakeRow: ScheduleOracle.take_row,
    ArgMax: ScheduleOracle.argmax,
    Eltwise: ScheduleOracle.eltwise,
}
