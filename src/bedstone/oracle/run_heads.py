"""The launches that know positions or heads, in NumPy."""

import numpy as np

from bedstone.graph import step
from bedstone.graph.step import Ref
from bedstone.lane.launch import Attending, Attention, FlatAttention, HeadProduct, Rope, RopeSide
from bedstone.oracle import arithmetic
from bedstone.oracle.execution import Array, Execution
from bedstone.oracle.run_dense import W, Writes, X, Y


def rope(run: Execution, launch: Rope) -> Writes:
    """Rotations, each after its norm."""
    for side in launch.sides:
        yield side.dst, _turned(run, side, launch)


def _turned(run: Execution, side: RopeSide, launch: Rope) -> Array:
    x = run.read(side.x)
    if side.norm is not None:
        norm = step.Norm(X, W, Y, side.norm.eps, launch.head_dim, side.norm.plus_one)
        x = arithmetic.norm(x, run.constants[side.norm.w], norm)
    sizes = (side.heads, launch.head_dim, launch.rot)
    op = step.Rope(X, Y, launch.table, launch.pos, *sizes, launch.kind, launch.offset)
    return arithmetic.rope(x, op, run.schedule.ropes[launch.table], run.params[launch.pos])


def attention(run: Execution, launch: Attention) -> Writes:
    """Attention over carried tables, and its gate."""
    keys = run.tables[launch.k.table]
    values = keys if launch.v is None else run.tables[launch.v.table]
    q = run.read(launch.q)
    if launch.split is not None:
        q = _beside(q, run.read(launch.split.tail), launch.heads)
    y = _attended(run, launch, q, (keys, values))
    if launch.gate is not None:
        y = y * arithmetic.ACTIVATIONS["sigmoid"](run.read(launch.gate))
    yield launch.dst, y


def flat_attention(run: Execution, launch: FlatAttention) -> Writes:
    """Attention over what every cached row was made into."""
    keys, values, tail = run.read(launch.k), run.read(launch.v), launch.tail
    if tail is not None:
        width = launch.dk - tail.own
        table = run.tables[tail.table.table][: len(keys), tail.first : tail.first + width]
        keys = _beside(keys, np.tile(table, launch.groups), launch.groups)
    yield launch.dst, _attended(run, launch, run.read(launch.q), (keys, values))


def _attended(run: Execution, launch: Attending, q: Array, cached: tuple[Array, Array]) -> Array:
    sizes = (launch.heads, launch.groups, launch.dk, launch.dv)
    rest = (launch.scale, launch.window, launch.softcap)
    op = step.Attention(X, Ref("k"), Ref("v"), Y, launch.pos, *sizes, *rest)
    return arithmetic.attention(q, arithmetic.Cache(*cached, run.params[launch.pos]), op)


def _beside(a: Array, b: Array, units: int) -> Array:
    """Units of `a` and of `b` side by side."""
    pair = [x.reshape(len(x), units, -1) for x in (a, b)]
    return np.concatenate(pair, axis=2).reshape(len(a), -1)


def head_product(run: Execution, launch: HeadProduct) -> Writes:
    """A product of each head."""
    op = step.HLinear(X, W, Y, launch.m.count, launch.transposed)
    yield launch.dst, arithmetic.hlinear(run.read(launch.x), run.constants[launch.m.const], op)
