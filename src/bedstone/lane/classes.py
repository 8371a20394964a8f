"""The fused classes: what the ops of a step become where a rule of the table fires.

A fused class holds the ops it joins, or their operands, so it says what it computes; the one IR of
the lane is the step's ops and these. `bedstone.graph.refs` derives what a class reads and makes.
"""

from dataclasses import dataclass
from typing import Literal

from bedstone.graph.step import Attention, Linear, Norm, Op, Out, Ref, Rope, RowSel, Set


@dataclass(frozen=True, slots=True)
class AddNorm:
    """`sum = a + b`, and the norm of each row of `sum`. Both are results."""

    a: Ref
    b: Ref
    sum: Out
    w: Ref
    out: Out
    eps: float
    plus_one: bool


@dataclass(frozen=True, slots=True)
class Glu:
    """`fn(x gate) * (x up)`."""

    x: Ref
    gate: Ref
    up: Ref
    out: Out
    fn: Literal["silu", "gelu_tanh"]


@dataclass(frozen=True, slots=True)
class NormRope:
    """The norm of each head by `w`, then the rotation: `rope.x` is what the norm reads."""

    w: Ref
    eps: float
    plus_one: bool
    rope: Rope

    @property
    def out(self) -> Out:
        """The rotated heads."""
        return self.rope.out


Placed = Linear | Norm | Rope | NormRope | Attention
"""An op that can write rows of a table in place."""


@dataclass(frozen=True, slots=True)
class Into:
    """An op whose result goes straight to rows of `table`: `op.out` is the table's next version."""

    op: Placed
    table: Ref
    at: RowSel

    @property
    def out(self) -> Out:
        """The table's next version."""
        return self.op.out


Side = Rope | NormRope | Into
"""A rotation, wherever it goes."""

Part = Linear | Into
"""A product, wherever it goes."""


@dataclass(frozen=True, slots=True)
class Ropes:
    """Rotations at the same positions by the same table, side by side."""

    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class Linears:
    """Products of one `x`, side by side."""

    parts: tuple[Part, ...]


Fused = AddNorm | Glu | NormRope | Into | Ropes | Linears
LaneOp = Op | Fused


def plain(op: LaneOp) -> LaneOp:
    """The op itself, wherever its result goes."""
    return op.op if isinstance(op, Into) else op


def product(op: Part) -> Linear:
    """The product that a part is."""
    made = plain(op)
    if not isinstance(made, Linear):
        raise TypeError(f"a {type(made).__name__} is no product")
    return made


def turn(op: Side) -> Rope:
    """The rotation that a side is, its norm aside."""
    made = plain(op)
    if isinstance(made, NormRope):
        return made.rope
    if not isinstance(made, Rope):
        raise TypeError(f"a {type(made).__name__} is no rotation")
    return made


def overwritten(op: LaneOp) -> tuple[Ref, ...]:
    """The table versions `op` writes over: reading one of them later is illegal."""
    match op:
        case Set(table=table) | Into(table=table):
            return (table,)
        case Ropes(sides=members) | Linears(parts=members):
            return tuple(name for member in members for name in overwritten(member))
        case _:
            return ()
