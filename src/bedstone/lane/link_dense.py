"""Links of the ops on whole rows, and of those that move values."""

from dataclasses import replace

from bedstone.graph import step
from bedstone.graph.step import Fixed
from bedstone.lane import classes, launch
from bedstone.lane.classes import Part, product
from bedstone.lane.destination import destination, factor
from bedstone.lane.facts import TOKENS, Facts
from bedstone.lane.launch import (
    Advance,
    Dst,
    EltwiseFn,
    GemmPart,
    OneLaunch,
    PreNorm,
    Read,
    ToBuf,
    ToRows,
    ToScratch,
    Version,
)


def embed(op: step.Embed, dst: ToBuf, facts: Facts) -> OneLaunch:
    """Embedded rows."""
    return launch.Embed(Read(op.ids), facts.matrix(op.table), facts.rows(op.out), dst)


def scaled_embed(op: classes.ScaledEmbed, dst: ToBuf, facts: Facts) -> OneLaunch:
    """Embedded rows, scaled."""
    ids, table = Read(op.embed.ids), facts.matrix(op.embed.table)
    return launch.Embed(ids, table, facts.rows(op.out), dst, op.by)


def norm(op: step.Norm, dst: Dst, facts: Facts) -> OneLaunch:
    """Each unit normed."""
    rows, width = facts.rows(op.x), facts.width(op.x)
    return launch.Norm(Read(op.x), op.w, rows, width, op.unit, op.eps, op.plus_one, dst)


def l2norm(op: step.L2Norm, dst: Dst, facts: Facts) -> OneLaunch:
    """Each unit brought to unit length."""
    rows, width = facts.rows(op.x), facts.width(op.x)
    return launch.L2Norm(Read(op.x), rows, width, op.unit, op.eps, dst)


def add_norm(op: classes.AddNorm, dst: Dst, facts: Facts) -> OneLaunch:
    """A sum and its norm."""
    width, pre = facts.width(op.sum), op.pre
    return launch.Norm(
        x=Read(op.a),
        w=op.w,
        rows=facts.rows(op.sum),
        width=width,
        unit=width,
        eps=op.eps,
        plus_one=op.plus_one,
        dst=dst,
        add=Read(op.b),
        sum=ToBuf(op.sum),
        pre=None if pre is None else PreNorm(pre.w, pre.eps, pre.plus_one),
    )


def gated_norm(op: classes.GatedNorm, dst: Dst, facts: Facts) -> OneLaunch:
    """Each unit normed, times an activation."""
    made = op.norm
    rows, width = facts.rows(made.x), facts.width(made.x)
    rest = (made.unit, made.eps, made.plus_one)
    return launch.GatedNorm(Read(made.x), made.w, Read(op.gate), rows, width, *rest, dst)


def linear(op: step.Linear, dst: Dst, facts: Facts) -> OneLaunch:
    """A product."""
    return _product(op, dst, facts)


def added(op: classes.AddedLinear, dst: Dst, facts: Facts) -> OneLaunch:
    """A product and what is added to it."""
    return replace(_product(op.linear, dst, facts), add=Read(op.add))


def capped(op: classes.CappedLinear, dst: Dst, facts: Facts) -> OneLaunch:
    """A product within a cap."""
    return replace(_product(op.linear, dst, facts), cap=op.cap)


def _product(op: step.Linear, dst: Dst, facts: Facts) -> launch.Product:
    m = facts.matrix(op.w)
    return launch.Product(factor(op.x, m, facts), m, facts.count(op.x), dst, op.bias)


def parts(members: tuple[Part, ...], facts: Facts) -> OneLaunch:
    """Products of one input."""
    products = [product(op) for op in members]
    made = tuple(
        GemmPart(facts.matrix(one.w), destination(op, facts), one.bias)
        for op, one in zip(members, products, strict=True)
    )
    x = factor(products[0].x, made[0].m, facts)
    return launch.Parts(x, facts.rows(x.tensor), made)


def glu(op: classes.Glu, dst: Dst, facts: Facts) -> OneLaunch:
    """A gated product."""
    gate, up = facts.matrix(op.gate), facts.matrix(op.up)
    return launch.Glu(factor(op.x, gate, facts), gate, up, op.fn, facts.rows(op.x), dst)


def pair(op: step.Add | step.Mul, dst: ToBuf, facts: Facts) -> OneLaunch:
    """A sum or a product of two tensors."""
    rows, width = facts.count(op.a), facts.width(op.a)
    if op.b in facts.graph.consts:
        return launch.Eltwise("add_row", Read(op.a), rows, width, dst, row=op.b)
    fn: EltwiseFn = "add" if isinstance(op, step.Add) else "mul"
    return launch.Eltwise(fn, Read(op.a), rows, width, dst, b=Read(op.b))


def mapped(op: step.Act | step.Scale | step.Softcap, dst: ToBuf, facts: Facts) -> OneLaunch:
    """A function of each value."""
    rows, width = facts.count(op.x), facts.width(op.x)
    match op:
        case step.Act(fn=fn):
            return launch.Eltwise(fn, Read(op.x), rows, width, dst)
        case step.Scale(by=by):
            return launch.Eltwise("scale", Read(op.x), rows, width, dst, by=by)
        case step.Softcap(cap=cap):
            return launch.Eltwise("softcap", Read(op.x), rows, width, dst, by=cap)


def argmax(op: step.ArgMax, dst: ToBuf, facts: Facts) -> OneLaunch:
    """The close of the step."""
    rows, vocab = facts.rows(op.x), facts.width(op.x)
    return launch.ArgMax(Read(op.x), rows, vocab, dst, _advances(rows, facts))


def sample(op: step.Sample, dst: ToBuf, facts: Facts) -> OneLaunch:
    """Tokens drawn."""
    return launch.Sample(Read(op.x), facts.rows(op.x), facts.width(op.x), dst)


def finish(op: step.Finish, dst: ToBuf, facts: Facts) -> OneLaunch:
    """The close of a step that draws."""
    rows = facts.rows(op.x)
    return launch.Finish(Read(op.x), rows, dst, _advances(rows, facts))


def _advances(rows: int, facts: Facts) -> tuple[Advance, ...]:
    return tuple(Advance(TOKENS, facts.position(row), row) for row in range(rows))


def row(op: step.Row, dst: ToBuf, facts: Facts) -> OneLaunch:
    """A row that is no view."""
    if isinstance(op.at, Fixed):
        x = Read(op.x, row=op.at.row)
        return launch.TakeRow(x, Fixed(0), 1, facts.width(op.x), dst)
    return launch.TakeRow(Read(op.x), op.at, facts.rows(op.x), facts.width(op.x), dst)


def part(op: step.Part, dst: ToBuf, facts: Facts) -> OneLaunch:
    """A part that is no view: columns of a cached table, or what a reader cannot follow."""
    if not facts.cached(op.x):
        sizes = (facts.width(op.x), op.pitch, op.offset, op.units, op.width)
        return launch.TakePart(Read(op.x), facts.count(op.x), *sizes, dst)
    table = Version(facts.storage[op.x], op.x)
    count = facts.count(op.out)
    return launch.Gather(table, op.offset, op.width, facts.width(op.x), count, dst)


def concat(op: step.Concat, dst: ToBuf, facts: Facts) -> OneLaunch:
    """Units side by side."""
    right = facts.width(op.b) // (1 if op.shared else op.units)
    widths = (facts.width(op.a) // op.units, right)
    count = facts.count(op.a)
    return launch.Concat(Read(op.a), Read(op.b), count, op.units, widths, op.shared, dst)


def set_rows(op: step.Set, dst: ToRows | ToScratch, facts: Facts) -> OneLaunch:
    """Rows set into a table, or copied into a scratch table."""
    rows, width = facts.rows(op.x), facts.width(op.x)
    return launch.SetRows(Read(op.x), rows, width, dst)
