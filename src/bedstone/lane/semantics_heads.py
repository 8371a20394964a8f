"""What the launches that know positions or heads compute, in terms."""

from collections.abc import Iterator

from bedstone.lane.launch import (
    Attending,
    Attention,
    Dst,
    FlatAttention,
    HeadProduct,
    KeyTail,
    Rope,
    RopeSide,
)
from bedstone.lane.layout import Layout
from bedstone.lane.machine import Machine
from bedstone.lane.sizing import attended_span, share_rows
from bedstone.lane.terms import Size, Term

Writes = Iterator[tuple[Dst, Term]]


def rope(launch: Rope, run: Machine) -> Writes:
    """Rotations, each after its norm."""
    for side in launch.sides:
        sizes = (launch.rows, side.heads, launch.head_dim, launch.rot, launch.offset)
        x = _head_norm(side, launch, run)
        at = (launch.table, launch.pos)
        yield side.dst, run.compute(run.terms.of("rope", *at, sizes, launch.kind, x))


def _head_norm(side: RopeSide, launch: Rope, run: Machine) -> Term:
    x, norm = run.read(side.x), side.norm
    if norm is None:
        return x
    size = (launch.rows, side.heads * launch.head_dim)
    attributes = (norm.w, size, launch.head_dim, norm.eps, norm.plus_one)
    return run.compute(run.terms.of("norm", *attributes, x))


def attention(launch: Attention, run: Machine) -> Writes:
    """Attention over cached rows, and its gate."""
    keys = run.cached(launch.k)
    values = None if launch.v is None else run.cached(launch.v)
    term = _attended(launch, (_query(launch, run), keys, values), run)
    if launch.gate is not None:
        size = (launch.rows, launch.heads * launch.dv)
        gate = run.compute(run.terms.map("sigmoid", None, run.read(launch.gate), size))
        term = run.compute(run.terms.pair("mul", term, gate, size))
    capacity = run.facts.graph.tables[launch.k.table].capacity
    _sized(launch, capacity, run)
    yield launch.dst, term


def _attended(launch: Attending, operands: tuple[Term, Term, Term | None], run: Machine) -> Term:
    sizes = (launch.rows, launch.heads, launch.groups, launch.dk, launch.dv)
    rest = (launch.scale, launch.window, launch.softcap)
    return run.compute(run.terms.of("attention", launch.pos, sizes, rest, *operands))


def _query(launch: Attention, run: Machine) -> Term:
    """The query, in one tensor or joined of two."""
    q, split = run.read(launch.q), launch.split
    if split is None:
        return q
    rows, heads = launch.rows, launch.heads
    sizes = ((rows, heads * split.own), (rows, heads * (launch.dk - split.own)))
    return _joined((heads, False), sizes, (q, run.read(split.tail)), run)


def _joined(
    how: tuple[int, bool], sizes: tuple[Size, Size], operands: tuple[Term, Term], run: Machine
) -> Term:
    """Units side by side: how many, and whether the second tensor is one that all share."""
    return run.compute(run.terms.of("concat", *how, *sizes, *operands))


def flat_attention(launch: FlatAttention, run: Machine) -> Writes:
    """Attention over what every cached row was made into."""
    q, keys, values = run.read(launch.q), run.read(launch.k), run.read(launch.v)
    capacity = run.facts.rows(launch.v.tensor)
    if launch.tail is not None:
        keys = _joined_keys(launch, launch.tail, keys, run)
    _sized(launch, capacity, run)
    yield launch.dst, _attended(launch, (q, keys, values), run)


def _joined_keys(launch: FlatAttention, tail: KeyTail, keys: Term, run: Machine) -> Term:
    """Each group's key, and the columns of the cached row that all groups share."""
    table, groups, width = run.cached(tail.table), launch.groups, launch.dk - tail.own
    rows, pitch = run.size(tail.table.table)
    run.require(pitch == tail.pitch, f"reads rows of `{tail.table.table}` as if {tail.pitch} wide")
    window = Layout(tail.first, rows, 1, width if rows == 1 else pitch, width, width)
    shared = run.compute(run.terms.view(table, (rows, pitch), window))
    sizes = ((rows, groups * tail.own), (rows, width))
    return _joined((groups, True), sizes, (keys, shared), run)


def _sized(launch: Attending, capacity: int, run: Machine) -> None:
    span = attended_span(capacity, launch.window)
    run.require(launch.span == span, f"attends {launch.span} rows, not {span}")
    shares = share_rows(launch.heads, launch.groups, launch.rows)
    run.require(launch.share_rows == shares, "reads a cached row once for no reason, or too often")
    run.require(1 <= launch.splits <= span, f"cuts {span} rows into {launch.splits} pieces")
    run.require(launch.rounded == run.facts.rounds_attention, "rounds what it should not")


def head_product(launch: HeadProduct, run: Machine) -> Writes:
    """A product of each head."""
    run.declared(launch.m)
    x = run.read(launch.x) if launch.transposed else run.factor(launch.x, launch.m)
    attributes = (launch.m, launch.rows, launch.transposed)
    yield launch.dst, run.compute(run.terms.of("heads", *attributes, x))
