"""The shape of what each op makes, from the shapes of what it reads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from bedstone.graph.refs import reads
from bedstone.graph.step import (
    Act,
    Add,
    ArgMax,
    Attention,
    Const,
    Embed,
    Linear,
    Mul,
    Norm,
    Op,
    Rope,
    Row,
    Scale,
    Set,
    Softcap,
    StepGraph,
    Value,
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
            made[op.out] = known[op.out] = result(op, known)
    return made


def declared(graph: StepGraph) -> dict[str, Value]:
    """What the names a graph declares hold: constants, tables (their first version), carried ids.

    A constant vector [n] is one row of n values.
    """
    return (
        {c.name: constant_value(c) for c in graph.consts.values()}
        | {t.name: Value(t.capacity, t.width) for t in graph.tables.values()}
        | {c.name: Value(c.rows, 1, "i32") for c in graph.carried.values()}
    )


def constant_value(const: Const) -> Value:
    """The rows and width of a constant."""
    rows, width = const.shape if len(const.shape) == 2 else (1, const.shape[-1])
    return Value(rows, width)


def result(op: Op, known: Mapping[str, Value]) -> Value:
    """What `op` makes; `known` holds all it reads. Whether the shapes agree is the checker's."""
    match op:
        case Add(a=x) | Mul(a=x) | Act(x=x) | Scale(x=x) | Softcap(x=x) | Set(table=x):
            value = known[x]
        case Norm():
            value = replace(known[op.x], units=max(1, known[op.x].width // max(1, op.unit)))
        case Rope():
            value = replace(known[op.x], units=op.heads)
        case Row():
            value = replace(known[op.x], rows=1)
        case Embed():
            value = Value(known[op.ids].rows, known[op.table].width)
        case Linear():
            value = Value(known[op.x].rows, known[op.w].rows)
        case Attention():
            value = Value(known[op.q].rows, op.heads * op.dv, units=op.heads)
        case ArgMax():
            value = Value(known[op.x].rows, 1, "i32")
        case _:
            assert_never(op)
    return value
