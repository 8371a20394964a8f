"""Links of the ops that know positions or heads."""

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
    return launch.FlatAttention(
        q=Read(made.q),
        k=Read(made.k),
        v=Read(made.v),
        pos=made.pos,
        rows=facts.rows(made.q),
        heads=made.heads,
        groups=made.groups,
        dk=made.dk,
        dv=made.dv,
        scale=made.scale,
        window=made.window,
        softcap=made.softcap,
        span=_span(made, facts),
        splits=_splits(made, facts),
        share_rows=share_rows(made.heads, made.groups, facts.rows(made.q)),
        dst=dst,
        tail=tail,
        rounded=facts.rounds_attention,
    )


def _paged(op: Attended, gate: Read | None, dst: Dst, facts: Facts) -> launch.Attention:
    made, split = op.attention, None
    if isinstance(op.split, QuerySplit):
        split = Split(op.split.own, Read(op.split.tail))
    k, v = (Version(facts.storage[name], name) for name in (made.k, made.v))
    return launch.Attention(
        q=Read(made.q),
        k=k,
        v=None if made.v == made.k else v,
        pos=made.pos,
        rows=facts.rows(made.q),
        heads=made.heads,
        groups=made.groups,
        dk=made.dk,
        dv=made.dv,
        scale=made.scale,
        window=made.window,
        softcap=made.softcap,
        span=_span(made, facts),
        splits=_splits(made, facts),
        share_rows=share_rows(made.heads, made.groups, facts.rows(made.q)),
        dst=dst,
        gate=gate,
        split=split,
        rounded=facts.rounds_attention,
    )


def _span(op: step.Attention, facts: Facts) -> int:
    return attended_span(facts.rows(op.k), op.window)


def _splits(op: step.Attention, facts: Facts) -> int:
    return split_count(_span(op, facts), op.groups * facts.rows(op.q), facts.knobs)


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
