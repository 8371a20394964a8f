"""What the rules of the table form: for each, the fused class made from the ops of a match.

Also the keys of siblings: what ops must share to stand side by side in one launch.
"""

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TypeVar

from bedstone.graph.refs import rename
from bedstone.graph.step import Act, Add, Attention, Linear, Mul, Norm, Rope, Set
from bedstone.lane.body import Body
from bedstone.lane.classes import (
    AddNorm,
    Glu,
    Into,
    LaneOp,
    Linears,
    NormRope,
    Part,
    Placed,
    Ropes,
    Side,
    plain,
    turn,
)
from bedstone.lane.pattern import Match

T = TypeVar("T")


def biased(match: Match) -> LaneOp:
    """The product with the constant added to it."""
    add = match.op("add", Add)
    return replace(match.op("linear", Linear), bias=add.b, out=add.out)


def gated(match: Match) -> LaneOp:
    """Both products, the activation and their product as one."""
    gate, up, act = match.op("gate", Linear), match.op("up", Linear), match.op("act", Act)
    if act.fn not in ("silu", "gelu_tanh"):
        raise TypeError(f"`{act.fn}` is no gate")
    return Glu(gate.x, gate.w, up.w, match.op("mul", Mul).out, act.fn)


def normed_turn(match: Match) -> LaneOp:
    """The rotation, of heads normed first."""
    norm, rope = match.op("norm", Norm), match.op("rope", Rope)
    return NormRope(norm.w, norm.eps, norm.plus_one, replace(rope, x=norm.x))


def placed(match: Match) -> LaneOp:
    """The op that makes the rows, made to write them where the set would."""
    made = next(op for op in match.ops if isinstance(op, Placed))
    into = match.op("set", Set)
    return Into(rename(made, {made.out: into.out}), into.table, into.at)


def turns(match: Match) -> LaneOp:
    """The rotations side by side."""
    return Ropes(_table_last(op for op in match.ops if isinstance(op, Side)))


def products(match: Match) -> LaneOp:
    """The products side by side."""
    return Linears(_table_last(op for op in match.ops if isinstance(op, Part)))


def _table_last(members: Iterable[T]) -> tuple[T, ...]:
    """Those that write table rows after those that write buffers."""
    return tuple(sorted(members, key=lambda op: isinstance(op, Into)))


def normed_sum(match: Match) -> LaneOp:
    """The norm of the sum, and the sum."""
    add, norm = match.op("add", Add), match.op("norm", Norm)
    return AddNorm(add.a, add.b, add.out, norm.w, norm.out, norm.eps, norm.plus_one)


def attended(op: Side, body: Body) -> Hashable:
    """The attention a rotation feeds, itself or through a table, and all its launch must share."""
    made = plain(op)
    if not isinstance(made, Rope | NormRope):
        return None
    attention = _attention(op.out, body)
    if attention is None:
        return None
    rope = turn(op)
    norm = (made.eps, made.plus_one) if isinstance(made, NormRope) else None
    return attention, rope.rope, rope.pos, rope.head_dim, rope.rot, rope.kind, norm


def _attention(name: str, body: Body) -> int | None:
    """The attention that reads a tensor, itself or from the table it is set into."""
    for key in body.readers(name):
        op = body.nodes[key].op
        if isinstance(plain(op), Attention):
            return key
        if isinstance(op, Set) and op.x == name:
            return _attention(op.out, body)
    return None


def factor(op: Part, _: Body) -> Hashable:
    """The tensor a product reads."""
    made = plain(op)
    return made.x if isinstance(made, Linear) else None
