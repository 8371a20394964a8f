"""Links: the launches each op that the optimizer leaves takes.

`link` is total over what a checked graph becomes: every class of `LINKED` and every fused class.
Results are first linked to be
written as f32; which forms they really take is decided once all their readers are known.
"""

from collections.abc import Callable
from typing import Any

from bedstone.graph import step
from bedstone.graph.refs import writes
from bedstone.graph.step import Fixed
from bedstone.lane import classes, launch
from bedstone.lane.classes import Into, LaneOp, Part, Side, plain, product, turn
from bedstone.lane.facts import TOKENS, Facts
from bedstone.lane.launch import (
    Advance,
    Dst,
    GemmPart,
    HeadNorm,
    Launch,
    Matrix,
    Read,
    RopeSide,
    ToBuf,
    ToRows,
    ToScratch,
    Version,
)
from bedstone.lane.sizing import attended_span, split_count


def link(op: LaneOp, facts: Facts) -> tuple[Launch, ...]:
    """The launches of `op`, in order."""
    match op:
        case classes.Ropes(sides=sides):
            return (_rope(sides, facts),)
        case classes.Linears(parts=parts):
            return (_parts(parts, facts),)
        case step.Rope() | classes.NormRope() | Into(op=step.Rope() | classes.NormRope()):
            return (_rope((op,), facts),)
        case _:
            made = plain(op)
            return (_LINKS[type(made)](made, _dst(op, facts), facts),)


def _dst(op: LaneOp, facts: Facts) -> Dst:
    """Where the result of an op goes: rows of a table, if it is made to write there."""
    *_, out = writes(op)
    if not isinstance(op, Into | step.Set):
        return ToBuf(out)
    table = facts.storage[op.table]
    if facts.scratch(op.table) and isinstance(op.at, Fixed):
        return ToScratch(table, op.at.row, out)
    return ToRows(table, op.at, out)


def _embed(op: step.Embed, dst: ToBuf, facts: Facts) -> Launch:
    return launch.Embed(Read(op.ids), facts.matrix(op.table), facts.rows(op.out), dst)


def _norm(op: step.Norm, dst: Dst, facts: Facts) -> Launch:
    rows, width = facts.rows(op.x), facts.width(op.x)
    return launch.Norm(Read(op.x), op.w, rows, width, op.unit, op.eps, op.plus_one, dst)


def _add_norm(op: classes.AddNorm, dst: Dst, facts: Facts) -> Launch:
    rows, width = facts.rows(op.sum), facts.width(op.sum)
    add, total = Read(op.b), ToBuf(op.sum)
    return launch.Norm(
        Read(op.a), op.w, rows, width, width, op.eps, op.plus_one, dst, add=add, sum=total
    )


def _factor(x: str, matrix: Matrix, facts: Facts) -> Read:
    """The input of a product, in the form its matrix asks for."""
    return Read(x, "quant" if facts.reads_quant(matrix) else "f32")


def _linear(op: step.Linear, dst: Dst, facts: Facts) -> Launch:
    m = facts.matrix(op.w)
    return launch.Product(_factor(op.x, m, facts), m, facts.rows(op.x), dst, op.bias)


def _parts(members: tuple[Part, ...], facts: Facts) -> Launch:
    products = [product(op) for op in members]
    parts = tuple(
        GemmPart(facts.matrix(made.w), _dst(op, facts), made.bias)
        for op, made in zip(members, products, strict=True)
    )
    x = _factor(products[0].x, parts[0].m, facts)
    return launch.Parts(x, facts.rows(x.tensor), parts)


def _glu(op: classes.Glu, dst: Dst, facts: Facts) -> Launch:
    gate, up = facts.matrix(op.gate), facts.matrix(op.up)
    return launch.Glu(_factor(op.x, gate, facts), gate, up, op.fn, facts.rows(op.x), dst)


def _rope(sides: tuple[Side, ...], facts: Facts) -> Launch:
    op = turn(sides[0])
    linked = tuple(_side(side, facts) for side in sides)
    rows = facts.rows(op.x)
    return launch.Rope(linked, op.rope, op.pos, rows, op.head_dim, op.rot, op.kind)


def _side(side: Side, facts: Facts) -> RopeSide:
    made, op = plain(side), turn(side)
    norm = None
    if isinstance(made, classes.NormRope):
        norm = HeadNorm(made.w, made.eps, made.plus_one)
    return RopeSide(Read(op.x), op.heads, _dst(side, facts), norm)


def _set(op: step.Set, dst: ToRows | ToScratch, facts: Facts) -> Launch:
    """A row set into a scratch table is a row copied."""
    rows, width = facts.rows(op.x), facts.width(op.x)
    if rows == 1 and isinstance(dst, ToScratch):
        return launch.TakeRow(Read(op.x), Fixed(0), rows, width, dst)
    return launch.SetRows(Read(op.x), rows, width, dst)


def _row(op: step.Row, dst: ToBuf, facts: Facts) -> Launch:
    return launch.TakeRow(Read(op.x), op.at, facts.rows(op.x), facts.width(op.x), dst)


def _attention(op: step.Attention, dst: Dst, facts: Facts) -> Launch:
    k, v = (Version(facts.storage[name], name) for name in (op.k, op.v))
    rows, span = facts.rows(op.q), attended_span(facts.rows(op.k), op.window)
    return launch.Attention(
        q=Read(op.q),
        k=k,
        v=v,
        pos=op.pos,
        rows=rows,
        heads=op.heads,
        groups=op.groups,
        dk=op.dk,
        dv=op.dv,
        scale=op.scale,
        window=op.window,
        softcap=op.softcap,
        span=span,
        splits=split_count(span, op.groups * rows, facts.knobs),
        dst=dst,
    )


def _argmax(op: step.ArgMax, dst: ToBuf, facts: Facts) -> Launch:
    rows, vocab = facts.rows(op.x), facts.width(op.x)
    advances = tuple(Advance(TOKENS, facts.position(row), row) for row in range(rows))
    return launch.ArgMax(Read(op.x), rows, vocab, dst, advances)


def _pair(op: step.Add | step.Mul, dst: ToBuf, facts: Facts) -> Launch:
    rows, width = facts.rows(op.a), facts.width(op.a)
    if op.b in facts.graph.consts:
        return launch.Eltwise("add_row", Read(op.a), rows, width, dst, row=op.b)
    fn: launch.EltwiseFn = "add" if isinstance(op, step.Add) else "mul"
    return launch.Eltwise(fn, Read(op.a), rows, width, dst, b=Read(op.b))


def _map(op: step.Act | step.Scale | step.Softcap, dst: ToBuf, facts: Facts) -> Launch:
    rows, width = facts.rows(op.x), facts.width(op.x)
    match op:
        case step.Act(fn=fn):
            return launch.Eltwise(fn, Read(op.x), rows, width, dst)
        case step.Scale(by=by):
            return launch.Eltwise("scale", Read(op.x), rows, width, dst, by=by)
        case step.Softcap(cap=cap):
            return launch.Eltwise("softcap", Read(op.x), rows, width, dst, by=cap)


_LINKS: dict[type, Callable[[Any, Any, Facts], Launch]] = {
    step.Embed: _embed,
    step.Norm: _norm,
    step.Linear: _linear,
    step.Add: _pair,
    step.Mul: _pair,
    step.Act: _map,
    step.Scale: _map,
    step.Softcap: _map,
    step.Row: _row,
    step.Set: _set,
    step.Attention: _attention,
    step.ArgMax: _argmax,
    classes.AddNorm: _add_norm,
    classes.Glu: _glu,
}

LINKED: frozenset[type] = frozenset({*_LINKS, step.Rope})
"""The classes of op that have a launch."""
