"""What the ops of a mixture of experts ask of their inputs and attributes."""

import math
from typing import assert_never, get_args

from bedstone.graph.check_scope import Rows, Scope
from bedstone.graph.step import MixtureOp, Renorm, Score, ScoreFn, TopK, XLinear, XSum


def shapes(op: MixtureOp, scope: Scope) -> Rows:
    """What the shape of the result leans on."""
    match op:
        case Score():
            rows = [scope.value(op.x)]
        case TopK():
            rows = _topk_shapes(op, scope)
        case Renorm():
            rows = [scope.value(op.x), scope.ids(op.ids, scope.known[op.x].rows)]
        case XLinear():
            rows = _xlinear(op, scope)
        case XSum():
            rows = _xsum(op, scope)
        case _:
            assert_never(op)
    return rows


def _topk_shapes(op: TopK, scope: Scope) -> Rows:
    experts = scope.known[op.x].width
    rows = [scope.value(op.x), (op.k >= 1, f"chooses {op.k} experts")]
    if op.bias is not None:
        rows += [scope.const(op.bias, 1), scope.wide(op.bias, experts)]
    return rows


def _xlinear(op: XLinear, scope: Scope) -> Rows:
    shape = scope.stack(op.w)
    x, chosen = scope.known[op.x], scope.known[op.ids].width
    fits = x.width in (shape[2], chosen * shape[2])
    return [
        scope.value(op.x),
        scope.const(op.w, 3),
        (op.experts == shape[0], f"`{op.w}` has {shape[0]} matrices for {op.experts} experts"),
        scope.ids(op.ids, x.rows),
        (fits, f"rows of `{op.x}` hold {x.width} values, not {shape[2]} or {chosen} times that"),
    ]


def _xsum(op: XSum, scope: Scope) -> Rows:
    x, w = scope.known[op.x], scope.known[op.w]
    return [
        scope.value(op.x),
        scope.value(op.w),
        (x.rows == w.rows, f"`{op.x}` has {x.rows} rows but `{op.w}` has {w.rows}"),
        (x.width % w.width == 0, f"{x.width} values are not {w.width} units"),
    ]


def attributes(op: MixtureOp, scope: Scope) -> Rows:
    """What else an op asks for, where its shapes are right."""
    match op:
        case Score():
            known = op.fn in get_args(ScoreFn)
            return [(known, f"function `{op.fn}` is none of {', '.join(get_args(ScoreFn))}")]
        case TopK():
            return _topk(op, scope.known[op.x].width)
        case Renorm():
            positive = math.isfinite(op.factor) and op.factor > 0
            return [(positive, f"factor {op.factor} is not positive and finite")]
        case _:
            return []


def _topk(op: TopK, experts: int) -> Rows:
    divide = op.groups >= 1 and experts % op.groups == 0
    each = experts // op.groups if divide else 0
    return [
        (divide, f"{experts} experts are not {op.groups} groups"),
        (1 <= op.group_k <= op.groups, f"keeps {op.group_k} of {op.groups} groups"),
        (1 <= op.group_best <= each, f"judges a group of {each} by {op.group_best} experts"),
        (op.k <= op.group_k * each, f"chooses {op.k} of {op.group_k * each} experts"),
    ]
