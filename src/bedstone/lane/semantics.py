"""What each kind of launch computes, in terms: the meaning that a kernel's contract promises."""

from collections.abc import Callable, Iterator
from typing import Any

from bedstone.lane import semantics_heads, semantics_mixture, semantics_recurrent
from bedstone.lane.facts import TOKENS
from bedstone.lane.inplace import in_place
from bedstone.lane.launch import (
    Advance,
    ArgMax,
    Attention,
    Concat,
    Conv,
    Decay,
    Delta,
    Dst,
    Eltwise,
    Embed,
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    Finish,
    FlatAttention,
    GatedNorm,
    Gather,
    Glu,
    HeadProduct,
    L2Norm,
    Launch,
    Matrix,
    Norm,
    OneLaunch,
    Parts,
    Product,
    Quantize,
    Read,
    Renorm,
    Rope,
    Route,
    Rows,
    Sample,
    Score,
    Sequences,
    SetRows,
    TakePart,
    TakeRow,
    ToBuf,
    TopK,
    WeightedSum,
    most_rows,
)
from bedstone.lane.layout import Layout
from bedstone.lane.machine import Machine
from bedstone.lane.terms import Size, Term
from bedstone.lane.warps import WIDE

Writes = Iterator[tuple[Dst, Term]]


def run_launch(launch: Launch, machine: Machine) -> None:
    """Run one launch; `machine.made` then holds the terms of all it computed.

    Raises `BrokenStepError` where it reads or writes other values, or other memory, than the graph
    says.
    """
    machine.begin(in_place(launch))
    members = launch.members if isinstance(launch, Sequences) else (launch,)
    results = [made for member in members for made in _RUNS[type(member)](member, machine)]
    for dst, term in results:
        machine.write(dst, term)


def _embed(launch: Embed, run: Machine) -> Writes:
    ids, table = run.read(launch.ids), launch.table
    run.declared(table)
    term = run.compute(run.terms.of("embed", table, launch.rows, ids))
    if launch.by is not None:
        term = run.compute(run.terms.map("scale", launch.by, term, (launch.rows, table.k)))
    yield launch.dst, term


def _norm(launch: Norm, run: Machine) -> Writes:
    x, size = run.read(launch.x), (launch.rows, launch.width)
    if launch.add is not None and launch.sum is not None:
        x = run.compute(run.terms.pair("add", x, _addend(launch, launch.add, run), size))
        yield launch.sum, x
    attributes = (launch.w, size, launch.unit, launch.eps, launch.plus_one)
    yield launch.dst, run.compute(run.terms.of("norm", *attributes, x))


def _addend(launch: Norm, add: Read, run: Machine) -> Term:
    x, pre = run.read(add), launch.pre
    if pre is None:
        return x
    size = (launch.rows, launch.width)
    attributes = (pre.w, size, launch.width, pre.eps, pre.plus_one)
    return run.compute(run.terms.of("norm", *attributes, x))


def _l2norm(launch: L2Norm, run: Machine) -> Writes:
    size = (launch.rows, launch.width)
    x = run.read(launch.x)
    yield launch.dst, run.compute(run.terms.of("l2norm", size, launch.unit, launch.eps, x))


def _gated_norm(launch: GatedNorm, run: Machine) -> Writes:
    size = (launch.rows, launch.width)
    attributes = (launch.w, size, launch.unit, launch.eps, launch.plus_one)
    norm = run.compute(run.terms.of("norm", *attributes, run.read(launch.x)))
    gate = run.compute(run.terms.map("silu", None, run.read(launch.gate), size))
    yield launch.dst, run.compute(run.terms.pair("mul", norm, gate, size))


def _quantize(launch: Quantize, run: Machine) -> Writes:
    x, name = run.read(launch.x), launch.x.tensor
    _whole(name, launch.rows, launch.width, run)
    run.require(
        launch.dst == ToBuf(name, f32=False, quant=True), f"`{name}` is quantized elsewhere"
    )
    yield launch.dst, x


def _whole(name: str, rows: Rows, width: int, run: Machine) -> None:
    """Break the step unless a launch takes all rows of a tensor that hold something."""
    size = (run.facts.count(name), run.facts.width(name))
    run.require(size == (rows, width), f"takes another size than `{name}` has")


def _linear(x: Term, m: Matrix, rows: Rows, bias: str | None, run: Machine) -> Term:
    if bias is not None:
        run.compute(run.terms.linear(x, m, rows, None))
    return run.compute(run.terms.linear(x, m, rows, bias))


def _whole_warps(m: Matrix, rows_a_warp: int, run: Machine) -> None:
    run.require(
        rows_a_warp in (1, WIDE) and m.n % rows_a_warp == 0,
        f"gives a warp {rows_a_warp} of {m.n} outputs",
    )


def _product(launch: Product, run: Machine) -> Writes:
    _whole_warps(launch.m, launch.rows_a_warp, run)
    x, size = run.factor(launch.x, launch.m), (most_rows(launch.rows), launch.m.n)
    term = _linear(x, launch.m, launch.rows, launch.bias, run)
    if launch.add is not None:
        term = run.compute(run.terms.pair("add", run.read(launch.add), term, size))
    if launch.cap is not None:
        term = run.compute(run.terms.map("softcap", launch.cap, term, size))
    yield launch.dst, term


def _parts(launch: Parts, run: Machine) -> Writes:
    for part in launch.parts:
        _whole_warps(part.m, part.rows_a_warp, run)
        x = run.factor(launch.x, part.m)
        yield part.dst, _linear(x, part.m, launch.rows, part.bias, run)


def _glu(launch: Glu, run: Machine) -> Writes:
    _whole_warps(launch.gate, launch.rows_a_warp, run)
    rows, size = launch.rows, (launch.rows, launch.gate.n)
    gate = _linear(run.factor(launch.x, launch.gate), launch.gate, rows, None, run)
    up = _linear(run.factor(launch.x, launch.up), launch.up, rows, None, run)
    act = run.compute(run.terms.map(launch.act, None, gate, size))
    yield launch.dst, run.compute(run.terms.pair("mul", act, up, size))


def _set_rows(launch: SetRows, run: Machine) -> Writes:
    x = run.read(launch.x)
    _whole(launch.x.tensor, launch.rows, launch.width, run)
    yield launch.dst, x


def _take_row(launch: TakeRow, run: Machine) -> Writes:
    x, size = run.read(launch.x), (launch.rows, launch.width)
    yield launch.dst, run.compute(run.terms.row(x, launch.at, size))


def _take_part(launch: TakePart, run: Machine) -> Writes:
    x = run.read(launch.x)
    size = (most_rows(launch.rows), launch.row)
    whole = Layout(launch.offset, size[0], launch.units, launch.row, launch.pitch, launch.width)
    _whole(launch.x.tensor, launch.rows, launch.row, run)
    yield launch.dst, run.compute(run.terms.view(x, size, _plain(whole)))


def _plain(layout: Layout) -> Layout:
    """The layout of a part, its units one where they lie side by side."""
    total = layout.units * layout.width
    beside = layout.units == 1 or layout.unit == layout.width
    row = total if layout.rows == 1 else layout.row
    units, unit, width = (1, total, total) if beside else (layout.units, layout.unit, layout.width)
    return Layout(layout.offset, layout.rows, units, row, unit, width)


def _concat(launch: Concat, run: Machine) -> Writes:
    rows, units, (left, right) = most_rows(launch.rows), launch.units, launch.widths
    run.require(launch.rows == run.facts.count(launch.a.tensor), "joins another number of rows")
    sizes = ((rows, units * left), (rows, right if launch.shared else units * right))
    operands = (run.read(launch.a), run.read(launch.b))
    yield launch.dst, run.compute(run.terms.of("concat", units, launch.shared, *sizes, *operands))


def _gather(launch: Gather, run: Machine) -> Writes:
    table, rows = run.cached(launch.table), most_rows(launch.rows)
    run.require(launch.rows == run.facts.count(launch.dst.tensor), "gathers other rows")
    window = Layout(launch.first, rows, 1, launch.pitch, launch.width, launch.width)
    size: Size = (rows, launch.pitch)
    yield launch.dst, run.compute(run.terms.view(table, size, _plain(window)))


def _argmax(launch: ArgMax, run: Machine) -> Writes:
    _advances(launch, run)
    size = (launch.rows, launch.vocab)
    yield launch.dst, run.compute(run.terms.of("argmax", size, run.read(launch.x)))


def _sample(launch: Sample, run: Machine) -> Writes:
    size = (launch.rows, launch.vocab)
    yield launch.dst, run.compute(run.terms.of("sample", size, run.read(launch.x)))


def _finish(launch: Finish, run: Machine) -> Writes:
    _advances(launch, run)
    yield launch.dst, run.compute(run.terms.of("finish", launch.rows, run.read(launch.x)))


def _advances(launch: ArgMax | Finish, run: Machine) -> None:
    positions = map(run.facts.position, range(launch.rows))
    advances = tuple(Advance(TOKENS, pos, item) for item, pos in enumerate(positions))
    run.require(launch.advances == advances, "advances other tokens or positions")


def _eltwise(launch: Eltwise, run: Machine) -> Writes:
    a, size = run.read(launch.a), (most_rows(launch.rows), launch.width)
    _whole(launch.a.tensor, launch.rows, launch.width, run)
    if launch.row is not None:
        term = run.terms.of(launch.fn, launch.row, (launch.rows, launch.width), a)
    elif launch.b is not None:
        term = run.terms.pair(launch.fn, a, run.read(launch.b), size)
    else:
        term = run.terms.map(launch.fn, launch.by, a, size)
    yield launch.dst, run.compute(term)


_RUNS: dict[type[OneLaunch], Callable[[Any, Machine], Writes]] = {
    Embed: _embed,
    Norm: _norm,
    L2Norm: _l2norm,
    GatedNorm: _gated_norm,
    Quantize: _quantize,
    Product: _product,
    Parts: _parts,
    Glu: _glu,
    SetRows: _set_rows,
    TakeRow: _take_row,
    TakePart: _take_part,
    Concat: _concat,
    Gather: _gather,
    ArgMax: _argmax,
    Sample: _sample,
    Finish: _finish,
    Eltwise: _eltwise,
    Rope: semantics_heads.rope,
    Attention: semantics_heads.attention,
    FlatAttention: semantics_heads.flat_attention,
    HeadProduct: semantics_heads.head_product,
    Score: semantics_mixture.score,
    TopK: semantics_mixture.topk,
    Renorm: semantics_mixture.renorm,
    Route: semantics_mixture.route,
    ExpertProduct: semantics_mixture.expert_product,
    ExpertGlu: semantics_mixture.expert_glu,
    ExpertSum: semantics_mixture.expert_sum,
    WeightedSum: semantics_mixture.weighted_sum,
    Decay: semantics_recurrent.decay,
    Conv: semantics_recurrent.conv,
    Delta: semantics_recurrent.delta,
}
