"""The keys of siblings: what ops must share to stand side by side in one launch."""

from collections.abc import Hashable

from bedstone.graph.step import Attention, Conv, Delta, L2Norm, Linear, Rope, Set
from bedstone.lane.body import Body
from bedstone.lane.classes import (
    Attended,
    Convolved,
    GatedDelta,
    GatedRows,
    NormRope,
    Part,
    Side,
    plain,
    turn,
)


def attended(op: Side, body: Body) -> Hashable:
    """The attention a rotation feeds, itself or through a table, and all its launch must share."""
    made = plain(op)
    if not isinstance(made, Rope | NormRope):
        return None
    attention = _fed(op.out, (Attention, Attended, GatedRows), body)
    if attention is None:
        return None
    rope = turn(op)
    norm = (made.eps, made.plus_one) if isinstance(made, NormRope) else None
    return attention, rope.rope, rope.pos, rope.head_dim, rope.rot, rope.kind, rope.offset, norm


def convolved(op: Conv | Convolved, body: Body) -> Hashable:
    """The delta rule that a convolution feeds, and all its launch must share."""
    one, act = (op.conv, op.act) if isinstance(op, Convolved) else (op, None)
    delta = _fed(op.out, (Delta, GatedDelta), body)
    return None if delta is None else (delta, body.facts.width(one.w), act)


def factor(op: Part, _: Body) -> Hashable:
    """The tensor a product reads."""
    made = plain(op)
    return made.x if isinstance(made, Linear) else None


def _fed(name: str, classes: tuple[type, ...], body: Body) -> int | None:
    """The node of some classes that reads a tensor: itself, from its table, or of unit length."""
    for key in body.readers(name):
        op = body.nodes[key].op
        if isinstance(plain(op), classes):
            return key
        if (isinstance(op, Set) and op.x == name) or isinstance(op, L2Norm):
            found = _fed(op.out, classes, body)
            if found is not None:
                return found
    return None
