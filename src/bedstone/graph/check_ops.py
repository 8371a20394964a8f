"""What each op of a StepGraph asks of its inputs and attributes, as rows of (holds, message).

The first row of an op that does not hold is its problem: later rows may lean on it.
"""

import math
from dataclasses import dataclass, field
from typing import assert_never, get_args

from bedstone.graph.step import (
    Act,
    ActFn,
    Add,
    ArgMax,
    AtParam,
    Attention,
    Embed,
    Linear,
    Mul,
    Norm,
    Op,
    Rope,
    RopeKind,
    Row,
    RowSel,
    Scale,
    Set,
    Softcap,
    StepGraph,
    Value,
)

Rows = list[tuple[bool, str]]


@dataclass(slots=True)
class Scope:
    """What is known where an op stands: the values so far, and the latest version of each table.

    `versions` maps each version made so far to its table, `latest` a table to its newest version.
    """

    graph: StepGraph
    known: dict[str, Value]
    versions: dict[str, str]
    latest: dict[str, str] = field(default_factory=dict)

    def write(self, op: Set) -> None:
        """Take note that `op` made a table's next version."""
        table = self.versions.get(op.table, op.table)
        self.versions[op.out] = table
        self.latest[table] = op.out

    def const(self, name: str, rank: int) -> tuple[bool, str]:
        """That `name` is a constant of this many dimensions."""
        const = self.graph.consts.get(name)
        noun = "matrix" if rank == 2 else "vector"
        return const is not None and len(const.shape) == rank, f"`{name}` is no constant {noun}"

    def table(self, name: str) -> tuple[bool, str]:
        """That `name` is a version of a table."""
        return name in self.versions, f"`{name}` is no table"

    def value(self, name: str) -> tuple[bool, str]:
        """That `name` is a computed f32 tensor (or a table read as one)."""
        holds = name not in self.graph.consts and self.known[name].dtype == "f32"
        return holds, f"`{name}` is no computed f32 tensor"

    def param(self, name: str) -> tuple[bool, str]:
        """That `name` is a param."""
        return name in self.graph.params, f"`{name}` is no param"

    def wide(self, name: str, width: int) -> tuple[bool, str]:
        """That the rows of `name` are `width` wide."""
        found = self.known[name].width
        return found == width, f"rows of `{name}` hold {found} values, not {width}"


def shape_rows(op: Op, scope: Scope) -> Rows:
    """What the shape of the op's result leans on: the kinds and shapes of its inputs."""
    match op:
        case Embed() | Norm() | Linear():
            rows = _weighted(op, scope)
        case Add() | Mul():
            rows = _pair(op, scope)
        case Act() | Scale() | Softcap() | Row() | ArgMax():
            rows = [scope.value(op.x)]
        case Rope():
            heads = (op.heads >= 1 and op.head_dim >= 1, f"turns {op.heads} heads of {op.head_dim}")
            rows = [scope.value(op.x), heads, scope.wide(op.x, op.heads * op.head_dim)]
        case Set():
            width = scope.known[op.table].width
            rows = [scope.table(op.table), scope.value(op.x), scope.wide(op.x, width)]
        case Attention():
            rows = _attention_shapes(op, scope)
        case _:
            assert_never(op)
    return rows


def _weighted(op: Embed | Norm | Linear, scope: Scope) -> Rows:
    match op:
        case Embed():
            ids = op.ids in scope.graph.carried
            rows = [(ids, f"`{op.ids}` carries no ids"), scope.const(op.table, 2)]
        case Norm():
            width = scope.known[op.x].width
            whole = op.unit >= 1 and width % op.unit == 0
            units = (whole, f"units of {op.unit} do not divide {width} values")
            rows = [scope.value(op.x), units, scope.const(op.w, 1), scope.wide(op.w, op.unit)]
        case Linear():
            w = scope.known[op.w]
            rows = [scope.value(op.x), scope.const(op.w, 2), scope.wide(op.x, w.width)]
            if op.bias is not None:
                rows += [scope.const(op.bias, 1), scope.wide(op.bias, w.rows)]
        case _:
            assert_never(op)
    return rows


def _pair(op: Add | Mul, scope: Scope) -> Rows:
    a, b = scope.known[op.a], scope.known[op.b]
    if isinstance(op, Add) and op.b in scope.graph.consts:
        return [scope.value(op.a), scope.const(op.b, 1), scope.wide(op.b, a.width)]
    same = (a.rows, a.width) == (b.rows, b.width)
    shapes = f"`{op.a}` is [{a.rows}, {a.width}] but `{op.b}` is [{b.rows}, {b.width}]"
    return [scope.value(op.a), scope.value(op.b), (same, shapes)]


def _attention_shapes(op: Attention, scope: Scope) -> Rows:
    heads, groups, k, v = op.heads, op.groups, scope.known[op.k], scope.known[op.v]
    sizes = f"has {heads} heads over {groups} groups of keys {op.dk} and values {op.dv} wide"
    return [
        (min(heads, groups, op.dk, op.dv) >= 1, sizes),
        (groups >= 1 and heads % groups == 0, f"{heads} heads do not divide over {groups} groups"),
        scope.value(op.q),
        scope.wide(op.q, heads * op.dk),
        scope.table(op.k),
        scope.wide(op.k, groups * op.dk),
        scope.table(op.v),
        scope.wide(op.v, groups * op.dv),
        (k.rows == v.rows, f"`{op.k}` has room for {k.rows} rows but `{op.v}` for {v.rows}"),
    ]


def attribute_rows(op: Op, scope: Scope) -> Rows:
    """What else an op asks for, where its shapes are right."""
    match op:
        case Norm():
            holds = math.isfinite(op.eps) and op.eps >= 0
            rows = [(holds, f"eps {op.eps} is neither zero nor positive and finite")]
        case Act() | Scale() | Softcap():
            rows = [_elementwise(op)]
        case Rope():
            rows = _rope(op, scope)
        case Row():
            rows = _selected(op.at, 1, scope.known[op.x].rows, scope)
        case Set():
            rows = _selected(op.at, scope.known[op.x].rows, scope.known[op.table].rows, scope)
        case Attention():
            rows = _attention(op, scope)
        case ArgMax():
            rows = _argmax(op, scope)
        case _:
            rows = []
    return rows


def _elementwise(op: Act | Scale | Softcap) -> tuple[bool, str]:
    match op:
        case Act():
            known = op.fn in get_args(ActFn)
            return known, f"function `{op.fn}` is none of {', '.join(get_args(ActFn))}"
        case Scale():
            return math.isfinite(op.by), f"factor {op.by} is not finite"
        case Softcap():
            return _cap(op.cap)


def _cap(cap: float) -> tuple[bool, str]:
    """A cap is positive and finite: 0 and negative caps are read differently everywhere."""
    return math.isfinite(cap) and cap > 0, f"cap {cap} is not positive and finite"


def _rope(op: Rope, scope: Scope) -> Rows:
    table = scope.graph.ropes.get(op.rope)
    pairs = 0 if table is None else len(table.inv_freq)
    return [
        (op.kind in get_args(RopeKind), f"kind `{op.kind}` is neither neox nor pair"),
        (0 < op.rot <= op.head_dim, f"turns {op.rot} values of a head of {op.head_dim}"),
        (op.rot % 2 == 0, f"turns {op.rot} values, which are no whole pairs"),
        (table is not None, f"`{op.rope}` is no rope table"),
        (pairs == op.rot // 2, f"`{op.rope}` has {pairs} frequencies for {op.rot // 2} pairs"),
        scope.param(op.pos),
    ]


def _selected(at: RowSel, rows: int, room: int, scope: Scope) -> Rows:
    """That `rows` rows at `at` lie within `room` rows, as far as the graph alone can tell."""
    if isinstance(at, AtParam):
        return [scope.param(at.param), (rows <= room, f"{rows} rows do not fit {room}")]
    inside = at.row >= 0 and at.row + rows <= room
    return [(inside, f"rows {at.row} to {at.row + rows} lie outside {room} rows")]


def _attention(op: Attention, scope: Scope) -> Rows:
    rows = [
        scope.param(op.pos),
        (math.isfinite(op.scale) and op.scale > 0, f"scale {op.scale} is not positive and finite"),
        (op.window is None or op.window >= 1, f"window {op.window} lets nothing through"),
    ]
    return rows if op.softcap is None else [*rows, _cap(op.softcap)]


def _argmax(op: ArgMax, scope: Scope) -> Rows:
    graph, rows = scope.graph, scope.known[op.x].rows
    wanted = graph.rows if graph.form == "batch" else 1
    message = f"closes {rows} rows, but a {graph.form} step has {wanted} sequences"
    return [(rows == wanted, message)]
