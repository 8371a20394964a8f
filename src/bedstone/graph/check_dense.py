"""What the ops on whole rows ask of their inputs and attributes."""

import math
from typing import assert_never, get_args

from bedstone.graph.check_scope import Rows, Scope
from bedstone.graph.step import (
    Act,
    ActFn,
    Add,
    ArgMax,
    DenseOp,
    Embed,
    Finish,
    L2Norm,
    Linear,
    Mul,
    Norm,
    Sample,
    Scale,
    Softcap,
)


def shapes(op: DenseOp, scope: Scope) -> Rows:
    """What the shape of the result leans on."""
    match op:
        case Embed() | Linear():
            rows = _weighted(op, scope)
        case Norm() | L2Norm():
            rows = _normed(op, scope)
        case Add() | Mul():
            rows = _pair(op, scope)
        case Act() | Scale() | Softcap() | ArgMax() | Sample():
            rows = [scope.value(op.x)]
        case Finish():
            rows = [scope.ids(op.x, scope.known[op.x].rows), scope.wide(op.x, 1)]
        case _:
            assert_never(op)
    return rows


def _weighted(op: Embed | Linear, scope: Scope) -> Rows:
    if isinstance(op, Embed):
        ids = op.ids in scope.graph.carried
        return [(ids, f"`{op.ids}` carries no ids"), scope.const(op.table, 2)]
    w = scope.known[op.w]
    rows = [scope.value(op.x), scope.const(op.w, 2), scope.wide(op.x, w.width)]
    if op.bias is not None:
        rows += [scope.const(op.bias, 1), scope.wide(op.bias, w.rows)]
    return rows


def _normed(op: Norm | L2Norm, scope: Scope) -> Rows:
    width = scope.known[op.x].width
    whole = op.unit >= 1 and width % op.unit == 0
    rows = [scope.value(op.x), (whole, f"units of {op.unit} do not divide {width} values")]
    if isinstance(op, Norm):
        rows += [scope.const(op.w, 1), scope.wide(op.w, op.unit)]
    return rows


def _pair(op: Add | Mul, scope: Scope) -> Rows:
    a, b = scope.known[op.a], scope.known[op.b]
    if isinstance(op, Add) and op.b in scope.graph.consts:
        return [scope.value(op.a), scope.const(op.b, 1), scope.wide(op.b, a.width)]
    same = (a.rows, a.width) == (b.rows, b.width)
    shapes = f"`{op.a}` is [{a.rows}, {a.width}] but `{op.b}` is [{b.rows}, {b.width}]"
    return [scope.value(op.a), scope.value(op.b), (same, shapes)]


def attributes(op: DenseOp, scope: Scope) -> Rows:
    """What else an op asks for, where its shapes are right."""
    match op:
        case Norm() | L2Norm():
            holds = math.isfinite(op.eps) and op.eps >= 0
            rows = [(holds, f"eps {op.eps} is neither zero nor positive and finite")]
        case Act() | Scale() | Softcap():
            rows = [_elementwise(op)]
        case ArgMax() | Sample() | Finish():
            rows = _sequences(op, scope)
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
            return cap(op.cap)


def cap(value: float) -> tuple[bool, str]:
    """That a cap is positive and finite: 0 and negative caps are read differently everywhere."""
    return math.isfinite(value) and value > 0, f"cap {value} is not positive and finite"


def _sequences(op: ArgMax | Sample | Finish, scope: Scope) -> Rows:
    graph, rows = scope.graph, scope.known[op.x].rows
    wanted = graph.rows if graph.form == "batch" else 1
    message = f"closes {rows} rows, but a {graph.form} step has {wanted} sequences"
    return [(rows == wanted, message)]
