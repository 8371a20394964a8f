"""What each kind of launch computes, in terms: the meaning that a kernel's contract promises."""

from collections.abc import Callable, Iterator
from typing import Any

from bedstone.lane.facts import TOKENS
from bedstone.lane.launch import (
    Advance,
    ArgMax,
    Attention,
    Dst,
    Eltwise,
    Embed,
    Glu,
    Launch,
    Matrix,
    Norm,
    Parts,
    Product,
    Quantize,
    Rope,
    RopeSide,
    SetRows,
    TakeRow,
    ToBuf,
)
from bedstone.lane.machine import Machine
from bedstone.lane.sizing import attended_span
from bedstone.lane.terms import Term

Writes = Iterator[tuple[Dst, Term]]


def run_launch(launch: Launch, machine: Machine) -> None:
    """Run one launch; `machine.made` then holds the terms of all it computed.

    Raises `BrokenStepError` where it reads or writes other values, or other memory, than the graph
    says.
    """
    machine.begin()
    results = list(_RUNS[type(launch)](launch, machine))
    for dst, term in results:
        machine.write(dst, term)


def _embed(launch: Embed, run: Machine) -> Writes:
    ids, table = run.read(launch.ids), launch.table
    run.declared(table)
    yield launch.dst, run.compute(run.terms.of("embed", table, launch.rows, ids))


def _norm(launch: Norm, run: Machine) -> Writes:
    x, size = run.read(launch.x), (launch.rows, launch.width)
    if launch.add is not None and launch.sum is not None:
        x = run.compute(run.terms.pair("add", x, run.read(launch.add), size))
        yield launch.sum, x
    attributes = (launch.w, size, launch.unit, launch.eps, launch.plus_one)
    yield launch.dst, run.compute(run.terms.of("norm", *attributes, x))


def _quantize(launch: Quantize, run: Machine) -> Writes:
    x, name = run.read(launch.x), launch.x.tensor
    size = (run.facts.rows(name), run.facts.width(name))
    run.require(size == (launch.rows, launch.width), f"quantizes another size than `{name}` has")
    run.require(
        launch.dst == ToBuf(name, f32=False, quant=True), f"`{name}` is quantized elsewhere"
    )
    yield launch.dst, x


def _linear(x: Term, m: Matrix, rows: int, bias: str | None, run: Machine) -> Term:
    if bias is not None:
        run.compute(run.terms.linear(x, m, rows, None))
    return run.compute(run.terms.linear(x, m, rows, bias))


def _product(launch: Product, run: Machine) -> Writes:
    x = run.factor(launch.x, launch.m)
    yield launch.dst, _linear(x, launch.m, launch.rows, launch.bias, run)


def _parts(launch: Parts, run: Machine) -> Writes:
    for part in launch.parts:
        x = run.factor(launch.x, part.m)
        yield part.dst, _linear(x, part.m, launch.rows, part.bias, run)


def _glu(launch: Glu, run: Machine) -> Writes:
    rows, size = launch.rows, (launch.rows, launch.gate.n)
    gate = _linear(run.factor(launch.x, launch.gate), launch.gate, rows, None, run)
    up = _linear(run.factor(launch.x, launch.up), launch.up, rows, None, run)
    act = run.compute(run.terms.of(launch.act, None, size, gate))
    yield launch.dst, run.compute(run.terms.pair("mul", act, up, size))


def _rope(launch: Rope, run: Machine) -> Writes:
    for side in launch.sides:
        sizes = (launch.rows, side.heads, launch.head_dim, launch.rot)
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


def _set_rows(launch: SetRows, run: Machine) -> Writes:
    x, name = run.read(launch.x), launch.x.tensor
    size = (run.facts.rows(name), run.facts.width(name))
    run.require(size == (launch.rows, launch.width), f"sets another size than `{name}` has")
    yield launch.dst, x


def _take_row(launch: TakeRow, run: Machine) -> Writes:
    x = run.read(launch.x)
    size = (launch.rows, launch.width)
    yield launch.dst, run.compute(run.terms.row(x, launch.at, size))


def _attention(launch: Attention, run: Machine) -> Writes:
    sizes = (launch.rows, launch.heads, launch.groups, launch.dk, launch.dv)
    rest = (launch.scale, launch.window, launch.softcap)
    operands = (run.read(launch.q), run.cached(launch.k), run.cached(launch.v))
    span = attended_span(run.facts.graph.tables[launch.k.table].capacity, launch.window)
    run.require(launch.span == span, f"attends {launch.span} rows, not {span}")
    run.require(1 <= launch.splits <= span, f"cuts {span} rows into {launch.splits} pieces")
    yield launch.dst, run.compute(run.terms.of("attention", launch.pos, sizes, rest, *operands))


def _argmax(launch: ArgMax, run: Machine) -> Writes:
    positions = map(run.facts.position, range(launch.rows))
    advances = tuple(Advance(TOKENS, pos, item) for item, pos in enumerate(positions))
    run.require(launch.advances == advances, "advances other tokens or positions")
    size = (launch.rows, launch.vocab)
    yield launch.dst, run.compute(run.terms.of("argmax", size, run.read(launch.x)))


def _eltwise(launch: Eltwise, run: Machine) -> Writes:
    a, size = run.read(launch.a), (launch.rows, launch.width)
    if launch.row is not None:
        term = run.terms.of(launch.fn, launch.row, size, a)
    elif launch.b is not None:
        term = run.terms.pair(launch.fn, a, run.read(launch.b), size)
    else:
        term = run.terms.of(launch.fn, launch.by, size, a)
    yield launch.dst, run.compute(term)


_RUNS: dict[type, Callable[[Any, Machine], Writes]] = {
    Embed: _embed,
    Norm: _norm,
    Quantize: _quantize,
    Product: _product,
    Parts: _parts,
    Glu: _glu,
    Rope: _rope,
    SetRows: _set_rows,
    TakeRow: _take_row,
    Attention: _attention,
    ArgMax: _argmax,
    Eltwise: _eltwise,
}
