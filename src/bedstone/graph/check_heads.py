"""What rotation, attention and products by head ask of their inputs and attributes."""

import math
from typing import assert_never, get_args

from bedstone.graph.check_dense import cap
from bedstone.graph.check_scope import Rows, Scope
from bedstone.graph.step import Attention, HeadOp, HLinear, Rope, RopeKind


def shapes(op: HeadOp, scope: Scope) -> Rows:
    """What the shape of the result leans on."""
    match op:
        case Rope():
            heads = (op.heads >= 1 and op.head_dim >= 1, f"turns {op.heads} heads of {op.head_dim}")
            rows = [scope.value(op.x), heads, scope.wide(op.x, op.heads * op.head_dim)]
        case Attention():
            rows = _attention_shapes(op, scope)
        case HLinear():
            rows = _hlinear(op, scope)
        case _:
            assert_never(op)
    return rows


def _attention_shapes(op: Attention, scope: Scope) -> Rows:
    heads, groups = op.heads, op.groups
    sizes = f"has {heads} heads over {groups} groups of keys {op.dk} and values {op.dv} wide"
    return [
        (min(heads, groups, op.dk, op.dv) >= 1, sizes),
        (groups >= 1 and heads % groups == 0, f"{heads} heads do not divide over {groups} groups"),
        scope.value(op.q),
        scope.wide(op.q, heads * op.dk),
        scope.cached(op.k),
        scope.wide(op.k, groups * op.dk),
        *_values(op, scope),
    ]


def _values(op: Attention, scope: Scope) -> Rows:
    """Values of their own, or the first dv of each group's key."""
    if op.v == op.k:
        return [(op.dv <= op.dk, f"reads values {op.dv} wide from keys {op.dk} wide")]
    k, v = scope.known[op.k], scope.known[op.v]
    return [
        scope.cached(op.v),
        scope.wide(op.v, op.groups * op.dv),
        (k.rows == v.rows, f"`{op.k}` has room for {k.rows} rows but `{op.v}` for {v.rows}"),
    ]


def _hlinear(op: HLinear, scope: Scope) -> Rows:
    shape = scope.stack(op.w)
    k = shape[1] if op.transposed else shape[2]
    return [
        scope.value(op.x),
        scope.const(op.w, 3),
        (op.heads == shape[0], f"`{op.w}` has {shape[0]} matrices for {op.heads} heads"),
        scope.wide(op.x, op.heads * k),
    ]


def attributes(op: HeadOp, scope: Scope) -> Rows:
    """What else an op asks for, where its shapes are right."""
    match op:
        case Rope():
            return _rope(op, scope)
        case Attention():
            return _attention(op, scope)
        case HLinear():
            return []


def _rope(op: Rope, scope: Scope) -> Rows:
    table = scope.graph.ropes.get(op.rope)
    pairs = 0 if table is None else len(table.inv_freq)
    return [
        (op.kind in get_args(RopeKind), f"kind `{op.kind}` is neither neox nor pair"),
        (op.rot > 0 and op.offset >= 0, f"turns {op.rot} values at {op.offset}"),
        (op.offset + op.rot <= op.head_dim, _beyond(op)),
        (op.rot % 2 == 0, f"turns {op.rot} values, which are no whole pairs"),
        (table is not None, f"`{op.rope}` is no rope table"),
        (pairs == op.rot // 2, f"`{op.rope}` has {pairs} frequencies for {op.rot // 2} pairs"),
        scope.param(op.pos),
    ]


def _beyond(op: Rope) -> str:
    at = f" at {op.offset}" if op.offset else ""
    return f"turns {op.rot} values{at} of a head of {op.head_dim}"


def _attention(op: Attention, scope: Scope) -> Rows:
    rows = [
        scope.param(op.pos),
        (math.isfinite(op.scale) and op.scale > 0, f"scale {op.scale} is not positive and finite"),
        (op.window is None or op.window >= 1, f"window {op.window} lets nothing through"),
    ]
    return rows if op.softcap is None else [*rows, cap(op.softcap)]
