"""The shape of what each op makes, from the shapes of what it reads."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from bedstone.graph.refs import reads, table_write
from bedstone.graph.step import (
    Act,
    Add,
    ArgMax,
    Attention,
    Concat,
    Const,
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
    Value,
    XLinear,
    XSum,
)


def with_values(graph: StepGraph) -> StepGraph:
    """`graph` with `values` filled."""
    return replace(graph, values=infer(graph))


def infer(graph: StepGraph) -> dict[str, Value]:
    """The value of each op's `out`; an op that reads an unknown name, or hangs on one, has none."""
    known = declared(graph)
    made: dict[str, Value] = {}
    for op in graph.ops:
        if all(name in known for name in reads(op)):
            fresh = results(op, known)
            made |= fresh
            known |= fresh
    return made


def declared(graph: StepGraph) -> dict[str, Value]:
    """What the names a graph declares hold: constants, tables (their first version), carried ids.

    A constant vector [n] is one row of n values, a stack [e, n, k] is e * n rows.
    """
    return (
        {c.name: constant_value(c) for c in graph.consts.values()}
        | {t.name: Value(t.capacity, t.width) for t in graph.tables.values()}
        | {c.name: Value(c.rows, 1, "i32") for c in graph.carried.values()}
    )


def constant_value(const: Const) -> Value:
    """The rows and width of a constant."""
    return Value(math.prod(const.shape[:-1]), const.shape[-1])


def results(op: Op, known: Mapping[str, Value]) -> dict[str, Value]:
    """What `op` makes: its result and, where it writes a table, the table's next version.

    `known` holds all it reads. Whether the shapes agree is the checker's.
    """
    made = {str(op.out): _result(op, known)}
    written = table_write(op)
    if written is not None:
        table, version = written
        made[version] = known[table]
    return made


def _result(op: Op, known: Mapping[str, Value]) -> Value:
    if isinstance(op, DenseOp):
        return _dense(op, known)
    if isinstance(op, PlacedOp):
        return _placed(op, known)
    if isinstance(op, HeadOp):
        return _headed(op, known)
    if isinstance(op, MixtureOp):
        return _mixed(op, known)
    return _recurrent(op, known)


def _dense(op: DenseOp, known: Mapping[str, Value]) -> Value:
    match op:
        case Add(a=x) | Mul(a=x) | Act(x=x) | Scale(x=x) | Softcap(x=x):
            value = known[x]
        case Norm() | L2Norm():
            value = replace(known[op.x], units=max(1, known[op.x].width // max(1, op.unit)))
        case Embed():
            value = Value(known[op.ids].rows, known[op.table].width)
        case Linear():
            value = Value(known[op.x].rows, known[op.w].rows)
        case ArgMax() | Sample() | Finish():
            value = Value(known[op.x].rows, 1, "i32")
        case _:
            assert_never(op)
    return value


def _placed(op: PlacedOp, known: Mapping[str, Value]) -> Value:
    match op:
        case Set():
            value = known[op.table]
        case Row():
            value = replace(known[op.x], rows=1)
        case Part():
            value = Value(known[op.x].rows, op.units * op.width, units=op.units)
        case Concat():
            a, b = known[op.a], known[op.b]
            width = a.width + b.width * (op.units if op.shared else 1)
            value = Value(a.rows, width, units=op.units)
        case _:
            assert_never(op)
    return value


def _headed(op: HeadOp, known: Mapping[str, Value]) -> Value:
    match op:
        case Rope():
            value = replace(known[op.x], units=op.heads)
        case Attention():
            value = Value(known[op.q].rows, op.heads * op.dv, units=op.heads)
        case HLinear():
            w = known[op.w]
            width = op.heads * w.width if op.transposed else w.rows
            value = Value(known[op.x].rows, width, units=op.heads)
        case _:
            assert_never(op)
    return value


def _mixed(op: MixtureOp, known: Mapping[str, Value]) -> Value:
    rows = known[op.x].rows
    match op:
        case Score():
            value = known[op.x]
        case TopK():
            value = Value(rows, op.k, "i32")
        case Renorm():
            value = Value(rows, known[op.ids].width)
        case XLinear():
            chosen = known[op.ids].width
            value = Value(rows, chosen * known[op.w].rows // max(1, op.experts), units=chosen)
        case XSum():
            value = Value(rows, known[op.x].width // max(1, known[op.w].width))
        case _:
            assert_never(op)
    return value


def _recurrent(op: RecurrentOp, known: Mapping[str, Value]) -> Value:
    match op:
        case Decay():
            value = known[op.a]
        case Conv():
            value = known[op.x]
        case Delta():
            value = Value(known[op.v].rows, op.heads * op.dv, units=op.heads)
        case _:
            assert_never(op)
    return value
