"""Links of the ops that know positions or heads."""

from collections.abc import Callable
from typing import TypeVar

from bedstone.graph import step
from bedstone.lane import classes, launch
from bedstone.lane.classes import Attended, KeySplit, QuerySplit, Side, plain, turn
from bedstone.lane.destination import destination, factor
from bedstone.lane.facts import Facts
from bedstone.lane.launch import (
    Dst,
    HeadNorm,
    KeyTail,
    OneLaunch,
    Read,
    RopeSide,
    Split,
    ToScratch,
    Version,
)
from bedstone.lane.sizing import attended_span, share_rows, split_count

AttendingT = TypeVar("AttendingT", bound=launch.Attending)


def rope(sides: tuple[Side, ...], facts: Facts) -> OneLaunch:
    """Rotations."""
    op = turn(sides[0])
    linked = tuple(_side(side, facts) for side in sides)
    sizes = (facts.rows(op.x), op.head_dim, op.rot, op.kind, op.offset)
    return launch.Rope(linked, op.rope, op.pos, *sizes)


def _side(side: Side, facts: Facts) -> RopeSide:
    made, op = plain(side), turn(side)
    norm = None
    if isinstance(made, classes.NormRope):
        norm = HeadNorm(made.w, made.eps, made.plus_one)
    return RopeSide(Read(op.x), op.heads, destination(side, facts), norm)


def attention(op: step.Attention, dst: Dst, facts: Facts) -> OneLaunch:
    """An attention as it stands."""
    return attended(Attended(op), dst, facts)


def attended(op: Attended, dst: Dst, facts: Facts) -> OneLaunch:
    """An attention, gated, or with its queries or keys in two places."""
    made = op.attention
    if facts.cached(made.k):
        return _paged(op, None if op.gate is None else Read(op.gate), dst, facts)
    tail = None
    if isinstance(op.split, KeySplit):
        table = Version(facts.storage[op.split.table], op.split.table)
        tail = KeyTail(op.split.own, table, op.split.first, facts.width(op.split.table))
    k, v = Read(made.k), Read(made.v)
    return _attending(launch.FlatAttention, made, dst, facts, k=k, v=v, tail=tail)


def _paged(op: Attended, gate: Read | None, dst: Dst, facts: Facts) -> launch.Attention:
    made, split = op.attention, None
    if isinstance(op.split, QuerySplit):
        split = Split(op.split.own, Read(op.split.tail))
    k, v = (Version(facts.storage[name], name) for name in (made.k, made.v))
    value = None if made.v == made.k else v
    return _attending(launch.Attention, made, dst, facts, k=k, v=value, gate=gate, split=split)


def _attending(
    kind: Callable[..., AttendingT], op: step.Attention, dst: Dst, facts: Facts, **own: object
) -> AttendingT:
    """The launch of a kind, with the fields of `own` that others do not have."""
    rows, span = facts.rows(op.q), attended_span(facts.rows(op.k), op.window)
    return kind(
        q=Read(op.q),
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
        share_rows=share_rows(op.heads, op.groups, rows),
        dst=dst,
        rounded=facts.rounds_attention,
        **own,
    )


def gated_rows(op: classes.GatedRows, facts: Facts) -> tuple[OneLaunch, ...]:
    """Each sequence's attention, gated by its row of the gate, into its row of the result."""
    return tuple(
        _paged(one, Read(op.gate, row=i), ToScratch(op.out, i, op.out), facts)
        for i, one in enumerate(op.attentions)
    )


def head_product(op: step.HLinear, dst: Dst, facts: Facts) -> OneLaunch:
    """A product of each head."""
    m = facts.stack(op.w)
    x = Read(op.x) if op.transposed else factor(op.x, m, facts)
    return launch.HeadProduct(x, m, facts.rows(op.x), op.transposed, dst)
