"""An interpreter of a StepGraph: slow, obvious, and written apart from every kernel.

Rows nobody has written are NaN, so whatever reads them shows in the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, assert_never

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.graph.check import require
from bedstone.graph.refs import table_write, writes
from bedstone.graph.step import (
    Act,
    Add,
    ArgMax,
    AtParam,
    Attention,
    Concat,
    Conv,
    Decay,
    Delta,
    DenseOp,
    Embed,
    Finish,
    HeadOp,
    HLinear,
    L2Norm,
    Linear,
    MixtureOp,
    Mul,
    Norm,
    Op,
    Part,
    PlacedOp,
    RecurrentOp,
    Renorm,
    Rope,
    Row,
    Sample,
    Scale,
    Score,
    Set,
    Softcap,
    StepGraph,
    TopK,
    XLinear,
    XSum,
)
from bedstone.oracle import arithmetic, mixture, recurrent
from bedstone.oracle.draw import Wish, draw
from bedstone.oracle.quantized import dequantize, quantize
from bedstone.spec.dtype import FORMATS

Array = NDArray[Any]
Floating = type[np.float32] | type[np.float64]
Numerics = Literal["precise", "quantized"]
T = TypeVar("T")


class StepOracle:
    """Runs one step after another.

    `constants` hold each constant's values as float32, [n, k] or [n]. `tables` are the carried
    tables by name; steps in several forms of one model share them. Under `quantized` numerics a
    product with a quantized matrix reads its activation quantized. `wishes` are what a step that
    draws its tokens is asked, for each sequence: greedy without any.
    """

    def __init__(
        self,
        graph: StepGraph,
        constants: Mapping[str, Array],
        dtype: Floating = np.float64,
        *,
        numerics: Numerics = "precise",
        tables: dict[str, Array] | None = None,
    ) -> None:
        require(graph)
        self.graph = graph
        self.tables = {} if tables is None else tables
        self.tensors: dict[str, Array] = {}
        self.wishes: Sequence[Wish] = ()
        self._dtype = dtype
        self._numerics: Numerics = numerics
        self._constants = {
            c.name: _constant(constants, c.name, c.shape, dtype) for c in graph.consts.values()
        }
        for table in graph.tables.values():
            if not table.scratch and table.name not in self.tables:
                empty = 0.0 if table.zeros else np.nan
                self.tables[table.name] = np.full((table.capacity, table.width), empty, dtype)

    def run(self, ids: Mapping[str, Sequence[int]], params: Mapping[str, int]) -> dict[str, Array]:
        """One step: `ids` for each carried vector, a value for each param. The graph's outputs.

        `tensors` then holds all the step made (of a table, its rows after the step).
        """
        graph = self.graph
        rows = graph.rows if graph.row_param is None else _given(params, graph.row_param)
        if not 1 <= rows <= graph.rows:
            raise CallerError(f"`{graph.row_param}` is {rows}, not 1 to {graph.rows} rows")
        tensors = self._constants | self._starting_tables()
        step = _Step(graph, self._numerics, params, tensors, self.wishes)
        for name in graph.carried:
            step.made[name] = _ids(name, _given(ids, name), rows)
        for op in graph.ops:
            step.take(op)
        self.tensors = {name: step.made[name] for op in graph.ops for name in writes(op)}
        return {name: step.made[name] for name in graph.outputs}

    def _starting_tables(self) -> dict[str, Array]:
        """Every table's first version: carried rows as they stand, scratch with nothing in it."""
        scratch = {
            t.name: np.full((t.capacity, t.width), np.nan, self._dtype)
            for t in self.graph.tables.values()
            if t.scratch
        }
        return scratch | {n: self.tables[n] for n in self.graph.tables if n not in scratch}


@dataclass(frozen=True, slots=True)
class _Step:
    """One step under way; `made` holds every tensor so far, constants and tables among them."""

    graph: StepGraph
    numerics: Numerics
    params: Mapping[str, int]
    made: dict[str, Array]
    wishes: Sequence[Wish]

    def take(self, op: Op) -> None:
        """Compute `op`; a table it writes is its own next version."""
        self.made[op.out] = self._make(op)
        written = table_write(op)
        if written is not None:
            table, version = written
            self.made[version] = self.made[table]

    def _make(self, op: Op) -> Array:
        if isinstance(op, DenseOp):
            return self._dense(op)
        if isinstance(op, PlacedOp):
            return self._placed(op)
        if isinstance(op, HeadOp):
            return self._headed(op)
        if isinstance(op, MixtureOp):
            return self._mixed(op)
        return self._recurrent(op)

    def _dense(self, op: DenseOp) -> Array:
        made = self.made
        match op:
            case Embed():
                out = _looked_up(made[op.table], made[op.ids], op)
            case Linear():
                y = arithmetic.product(self._factor(op.x, op.w), made[op.w])
                out = y if op.bias is None else y + made[op.bias]
            case Norm():
                out = arithmetic.norm(made[op.x], made[op.w], op)
            case L2Norm():
                out = arithmetic.l2norm(made[op.x], op)
            case Add() | Mul() | Act() | Scale() | Softcap():
                out = self._elementwise(op)
            case ArgMax():
                out = np.argmax(made[op.x], axis=-1, keepdims=True).astype(np.int32)
            case Sample():
                out = self._drawn(made[op.x])
            case Finish():
                out = made[op.x] * np.int32((made[op.x] >= 0).all())
            case _:
                assert_never(op)
        return out

    def _drawn(self, logits: Array) -> Array:
        """A token of each sequence, whose length after the step is its place."""
        batch = self.graph.form == "batch"
        names = [f"pos.{row}" if batch else "pos" for row in range(len(logits))]
        wishes = self.wishes or [Wish()] * len(names)
        drawn = [
            draw(row, wish, _given(self.params, name))[0]
            for row, wish, name in zip(logits, wishes, names, strict=True)
        ]
        return np.array(drawn, np.int32)[:, None]

    def _factor(self, x: str, w: str) -> Array:
        """The input of a product, as the numerics have it read."""
        values = self.made[x]
        if self.numerics == "quantized" and FORMATS[self.graph.consts[w].format].quantized:
            return dequantize(*quantize(values), values.dtype)
        return values

    def _elementwise(self, op: Add | Mul | Act | Scale | Softcap) -> Array:
        made = self.made
        match op:
            case Add():
                out = made[op.a] + made[op.b]
            case Mul():
                out = made[op.a] * made[op.b]
            case Act():
                out = arithmetic.ACTIVATIONS[op.fn](made[op.x])
            case Scale():
                out = made[op.x] * made[op.x].dtype.type(op.by)
            case Softcap():
                out = arithmetic.softcap(made[op.x], op.cap)
            case _:
                assert_never(op)
        return out

    def _headed(self, op: HeadOp) -> Array:
        made = self.made
        match op:
            case Rope():
                x, length = made[op.x], _given(self.params, op.pos)
                self._within(op.out, length - len(x), length, length)
                return arithmetic.rope(x, op, self.graph.ropes[op.rope], length)
            case Attention():
                length = _given(self.params, op.pos)
                q, cache = made[op.q], arithmetic.Cache(made[op.k], made[op.v], length)
                self._within(op.out, length - len(q), length, len(cache.keys))
                return arithmetic.attention(q, cache, op)
            case HLinear():
                x = made[op.x] if op.transposed else self._factor(op.x, op.w)
                return arithmetic.hlinear(x, made[op.w], op)

    def _placed(self, op: PlacedOp) -> Array:
        made = self.made
        match op:
            case Row():
                x = made[op.x]
                out = x[self._rows(op, 1, len(x))].copy()
            case Part():
                starts = op.offset + op.pitch * np.arange(op.units)[:, None]
                window = made[op.x][:, (starts + np.arange(op.width)).reshape(-1)]
                out = np.ascontiguousarray(window)
            case Concat():
                out = _joined(made[op.a], made[op.b], op)
            case Set():
                out, x = made[op.table], made[op.x]
                first = op.column or 0
                out[self._rows(op, len(x), len(out)), first : first + x.shape[1]] = x
            case _:
                assert_never(op)
        return out

    def _mixed(self, op: MixtureOp) -> Array:
        made = self.made
        match op:
            case Score():
                out: Array = mixture.score(made[op.x], op)
            case TopK():
                out = mixture.topk(made[op.x], None if op.bias is None else made[op.bias], op)
            case Renorm():
                out = mixture.renorm(made[op.x], made[op.ids], op)
            case XLinear():
                out = mixture.xlinear(self._factor(op.x, op.w), made[op.ids], made[op.w])
            case XSum():
                out = mixture.xsum(made[op.x], made[op.w])
            case _:
                assert_never(op)
        return out

    def _recurrent(self, op: RecurrentOp) -> Array:
        made = self.made
        match op:
            case Decay():
                return recurrent.decay(made[op.a], made[op.a_log], made[op.dt])
            case Conv():
                return recurrent.conv(made[op.x], made[op.w], made[op.ring])
            case Delta():
                qkv = (made[op.q], made[op.k], made[op.v])
                gates = recurrent.Gates(made[op.g], made[op.beta])
                return recurrent.delta(qkv, gates, made[op.state], op)

    def _rows(self, op: Row | Set, rows: int, room: int) -> slice:
        """The `rows` rows an op places, of the `room` there are."""
        at = op.at
        start = _given(self.params, at.param) - rows if isinstance(at, AtParam) else at.row
        self._within(op.out, start, start + rows, room)
        return slice(start, start + rows)

    def _within(self, out: str, start: int, end: int, room: int) -> None:
        if start < 0 or end > room:
            raise CallerError(f"`{out}` asks for rows {start} to {end} of {room}")


def _constant(
    constants: Mapping[str, Array], name: str, shape: tuple[int, ...], dtype: Floating
) -> Array:
    values = np.asarray(_given(constants, name), dtype)
    if values.shape != shape:
        raise CallerError(f"`{name}` is {list(values.shape)}, but the graph reads {list(shape)}")
    return values


def _given(given: Mapping[str, T], name: str) -> T:
    if name not in given:
        raise CallerError(f"no value is given for `{name}`")
    return given[name]


def _ids(name: str, ids: Sequence[int], rows: int) -> Array:
    if len(ids) != rows:
        raise CallerError(f"`{name}` holds {len(ids)} ids for a step of {rows} rows")
    return np.asarray(ids, np.int32).reshape(rows, 1)


def _looked_up(table: Array, ids: Array, op: Embed) -> Array:
    if ids.min() < 0 or ids.max() >= table.shape[0]:
        raise CallerError(f"`{op.ids}` holds an id outside the {table.shape[0]} of `{op.table}`")
    return table[ids[:, 0]]


def _joined(a: Array, b: Array, op: Concat) -> Array:
    """Units of `a` and `b` side by side; a shared `b` is one unit beside each of `a`."""
    left = a.reshape(len(a), op.units, -1)
    right = b.reshape(len(b), 1 if op.shared else op.units, -1)
    right = np.broadcast_to(right, (len(b), op.units, right.shape[2]))
    return np.concatenate([left, right], axis=2).reshape(len(a), -1)
