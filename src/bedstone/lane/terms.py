"""What a step computes, as symbols: equal terms are equal values, bit for bit.

A term is the number of an expression: an operation, its attributes and sizes, and the terms it is
applied to. `Terms` gives the same number to the same expression, so comparing a schedule with its
graph is comparing numbers. Both sides build terms with the same constructors, from what each itself
says, and share nothing else.
"""

from collections.abc import Hashable

from bedstone.errors import CallerError
from bedstone.graph.step import (
    Act,
    Add,
    ArgMax,
    Attention,
    Embed,
    Fixed,
    Linear,
    Mul,
    Norm,
    Op,
    Rope,
    Row,
    RowSel,
    Scale,
    Set,
    Softcap,
)
from bedstone.lane.facts import Facts
from bedstone.lane.launch import Matrix

Term = int


class Terms:
    """Numbers expressions: the same for the same expression, whoever asks."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Hashable, ...], Term] = {}

    def of(self, *expression: Hashable) -> Term:
        """The number of an expression: its operation, attributes and operands."""
        return self._numbers.setdefault(expression, len(self._numbers))

    def source(self, name: str) -> Term:
        """What a carried vector or a table holds when the step begins."""
        return self.of("source", name)

    def pair(self, fn: str, a: Term, b: Term, size: tuple[int, int]) -> Term:
        """The sum or product of two tensors; their order does not change a bit."""
        return self.of(fn, size, *sorted((a, b)))

    def linear(self, x: Term, m: Matrix, rows: int, bias: str | None) -> Term:
        """A product; a bias is a constant row added to it."""
        product = self.of("linear", m, rows, x)
        return product if bias is None else self.of("add_row", bias, (rows, m.n), product)

    def row(self, x: Term, at: RowSel, size: tuple[int, int]) -> Term:
        """One row of `x`, which is `x` where it has one."""
        return x if size[0] == 1 and at == Fixed(0) else self.of("row", at, size, x)


def graph_terms(terms: Terms, facts: Facts) -> dict[str, Term]:
    """The term of every tensor that a graph names, constants aside."""
    graph = facts.graph
    found = {name: terms.source(name) for name in (*graph.carried, *graph.tables)}
    for op in graph.ops:
        found[op.out] = _term(op, found, terms, facts)
    return found


def _term(op: Op, known: dict[str, Term], terms: Terms, facts: Facts) -> Term:
    match op:
        case Add() | Mul():
            term = _pair(op, known, terms, facts)
        case Act() | Scale() | Softcap():
            term = _map(op, known, terms, facts)
        case Rope() | Attention():
            term = _positioned(op, known, terms, facts)
        case Row() | Set():
            term = _placed(op, known, terms, facts)
        case Embed() | Norm() | Linear() | ArgMax():
            term = _weighted(op, known, terms, facts)
        case _:
            raise CallerError(f"`{op.out}` is of a class no lane lowers, `{type(op).__name__}`")
    return term


def _pair(op: Add | Mul, known: dict[str, Term], terms: Terms, facts: Facts) -> Term:
    size = _size(op.a, facts)
    if op.b in facts.graph.consts:
        return terms.of("add_row", op.b, size, known[op.a])
    fn = "add" if isinstance(op, Add) else "mul"
    return terms.pair(fn, known[op.a], known[op.b], size)


def _map(op: Act | Scale | Softcap, known: dict[str, Term], terms: Terms, facts: Facts) -> Term:
    size, x = _size(op.x, facts), known[op.x]
    match op:
        case Act(fn=fn):
            return terms.of(fn, None, size, x)
        case Scale(by=by):
            return terms.of("scale", by, size, x)
        case Softcap(cap=cap):
            return terms.of("softcap", cap, size, x)


def _positioned(op: Rope | Attention, known: dict[str, Term], terms: Terms, facts: Facts) -> Term:
    match op:
        case Rope(rope=rope, pos=pos, kind=kind):
            sizes = (facts.rows(op.x), op.heads, op.head_dim, op.rot)
            return terms.of("rope", rope, pos, sizes, kind, known[op.x])
        case Attention(pos=pos):
            shape = (facts.rows(op.q), op.heads, op.groups, op.dk, op.dv)
            rest = (op.scale, op.window, op.softcap)
            return terms.of("attention", pos, shape, rest, known[op.q], known[op.k], known[op.v])


def _placed(op: Row | Set, known: dict[str, Term], terms: Terms, facts: Facts) -> Term:
    match op:
        case Row(at=at):
            return terms.row(known[op.x], at, _size(op.x, facts))
        case Set(at=at):
            return terms.of("set", at, known[op.table], known[op.x])


def _weighted(
    op: Embed | Norm | Linear | ArgMax, known: dict[str, Term], terms: Terms, facts: Facts
) -> Term:
    match op:
        case Embed():
            return terms.of("embed", facts.matrix(op.table), facts.rows(op.ids), known[op.ids])
        case Norm():
            size = _size(op.x, facts)
            return terms.of("norm", op.w, size, op.unit, op.eps, op.plus_one, known[op.x])
        case Linear():
            m = facts.matrix(op.w)
            return terms.linear(known[op.x], m, facts.rows(op.x), op.bias)
        case ArgMax():
            return terms.of("argmax", _size(op.x, facts), known[op.x])


def _size(name: str, facts: Facts) -> tuple[int, int]:
    return facts.rows(name), facts.width(name)
