"""What the ops that carry a state ask of their inputs and attributes."""

import math
from typing import assert_never

from bedstone.graph.check_scope import Rows, Scope
from bedstone.graph.step import Conv, Decay, Delta, RecurrentOp


def shapes(op: RecurrentOp, scope: Scope) -> Rows:
    """What the shape of the result leans on."""
    match op:
        case Decay():
            rows = [scope.value(op.a)]
            for name in (op.a_log, op.dt):
                rows += [scope.const(name, 1), scope.wide(name, scope.known[op.a].width)]
        case Conv():
            rows = _conv(op, scope)
        case Delta():
            rows = _delta(op, scope)
        case _:
            assert_never(op)
    return rows


def _conv(op: Conv, scope: Scope) -> Rows:
    w, width = scope.known[op.w], scope.known[op.x].width
    return [
        scope.value(op.x),
        scope.const(op.w, 2),
        (w.rows == width, f"`{op.w}` has taps for {w.rows} channels, not {width}"),
        (w.width >= 2, f"`{op.w}` has {w.width} taps, which carry nothing"),
        scope.zeros(op.ring),
        scope.shape(op.ring, w.width - 1, width),
    ]


def _delta(op: Delta, scope: Scope) -> Rows:
    heads, keys, rows = op.heads, op.key_heads, scope.known[op.v].rows
    sizes = f"has {heads} heads over {keys} of keys {op.dk} and values {op.dv} wide"
    widths = [(op.q, keys * op.dk), (op.k, keys * op.dk), (op.v, heads * op.dv)]
    widths += [(op.g, heads), (op.beta, heads)]
    return [
        (min(heads, keys, op.dk, op.dv) >= 1, sizes),
        (keys >= 1 and heads % keys == 0, f"{heads} heads do not divide over {keys} of keys"),
        *(scope.value(name) for name, _ in widths),
        *(scope.shape(name, rows, width) for name, width in widths),
        scope.zeros(op.state),
        scope.shape(op.state, heads * op.dk, op.dv),
    ]


def attributes(op: RecurrentOp) -> Rows:
    """What else an op asks for, where its shapes are right."""
    if not isinstance(op, Delta):
        return []
    positive = math.isfinite(op.scale) and op.scale > 0
    return [(positive, f"scale {op.scale} is not positive and finite")]
