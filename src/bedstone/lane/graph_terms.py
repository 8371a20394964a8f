"""The terms of a step graph: what it says that each of its tensors holds."""

from collections.abc import Hashable
from typing import assert_never

from bedstone.graph.refs import table_write
from bedstone.graph.step import (
    Act,
    Add,
    ArgMax,
    Attention,
    Concat,
    Conv,
    Decay,
    Delta,
    DenseOp,
    Embed,
    Finish,
    HeadOp,
    HLinear,
    L2Norm,
    Linear,
    MixtureOp,
    Mul,
    Norm,
    Op,
    Part,
    PlacedOp,
    RecurrentOp,
    Renorm,
    Rope,
    Row,
    Sample,
    Scale,
    Score,
    Set,
    Softcap,
    TopK,
    XLinear,
    XSum,
)
from bedstone.lane.facts import Facts
from bedstone.lane.layout import Layout
from bedstone.lane.terms import Size, Term, Terms


def graph_terms(terms: Terms, facts: Facts) -> dict[str, Term]:
    """The term of every tensor that a graph names, constants aside."""
    reader = _Reader(terms, facts)
    for op in facts.graph.ops:
        reader.take(op)
    return reader.known


class _Reader:
    """Reads a graph op by op; `known` are the terms so far."""

    def __init__(self, terms: Terms, facts: Facts) -> None:
        self.terms = terms
        self.facts = facts
        graph = facts.graph
        self.known = {name: terms.source(name) for name in (*graph.carried, *graph.tables)}

    def take(self, op: Op) -> None:
        """Add what `op` makes, and the version it leaves its state at."""
        self.known[op.out] = self._term(op)
        written = table_write(op)
        if written is not None and written[1] != op.out:
            self.known[written[1]] = self._state(op)

    def _term(self, op: Op) -> Term:
        if isinstance(op, DenseOp):
            return self._dense(op)
        if isinstance(op, PlacedOp):
            return self._placed(op)
        if isinstance(op, HeadOp):
            return self._headed(op)
        if isinstance(op, MixtureOp):
            return self._mixed(op)
        return self._recurrent(op)

    def _size(self, name: str) -> Size:
        return self.facts.rows(name), self.facts.width(name)

    def _dense(self, op: DenseOp) -> Term:
        terms, known, facts = self.terms, self.known, self.facts
        match op:
            case Embed():
                table = facts.matrix(op.table)
                term = terms.of("embed", table, facts.rows(op.ids), known[op.ids])
            case Norm():
                attributes = (op.w, self._size(op.x), op.unit, op.eps, op.plus_one)
                term = terms.of("norm", *attributes, known[op.x])
            case L2Norm():
                term = terms.of("l2norm", self._size(op.x), op.unit, op.eps, known[op.x])
            case Linear():
                m = facts.matrix(op.w)
                term = terms.linear(known[op.x], m, facts.count(op.x), op.bias)
            case ArgMax():
                term = terms.of("argmax", self._size(op.x), known[op.x])
            case Sample():
                term = terms.of("sample", self._size(op.x), known[op.x])
            case Finish():
                term = terms.of("finish", facts.rows(op.x), known[op.x])
            case _:
                term = self._elementwise(op)
        return term

    def _elementwise(self, op: Add | Mul | Act | Scale | Softcap) -> Term:
        terms, known = self.terms, self.known
        match op:
            case Add(b=b) if b in self.facts.graph.consts:
                size = (self.facts.count(op.a), self.facts.width(op.a))
                term = terms.of("add_row", b, size, known[op.a])
            case Add() | Mul():
                fn = "add" if isinstance(op, Add) else "mul"
                term = terms.pair(fn, known[op.a], known[op.b], self._size(op.a))
            case Act(fn=fn):
                term = terms.map(fn, None, known[op.x], self._size(op.x))
            case Scale(by=by):
                term = terms.map("scale", by, known[op.x], self._size(op.x))
            case Softcap(cap=cap):
                term = terms.map("softcap", cap, known[op.x], self._size(op.x))
            case _:
                assert_never(op)
        return term

    def _placed(self, op: PlacedOp) -> Term:
        terms, known, facts = self.terms, self.known, self.facts
        match op:
            case Row(at=at):
                return terms.row(known[op.x], at, self._size(op.x))
            case Part():
                size = self._size(op.x)
                layout = Layout.dense(*size).take_part(op)
                if layout is None:
                    raise TypeError("a tensor in its own memory is whole rows")
                return terms.view(known[op.x], size, layout)
            case Concat():
                attributes = (op.units, op.shared, self._size(op.a), self._size(op.b))
                return terms.of("concat", *attributes, known[op.a], known[op.b])
            case Set():
                tables = (known[op.table], known[op.x])
                rows = (facts.rows(op.x), facts.rows(op.table))
                return terms.set(op.at, op.column, rows, tables)

    def _headed(self, op: HeadOp) -> Term:
        terms, known, facts = self.terms, self.known, self.facts
        match op:
            case Rope():
                sizes = (facts.rows(op.x), op.heads, op.head_dim, op.rot, op.offset)
                return terms.of("rope", op.rope, op.pos, sizes, op.kind, known[op.x])
            case Attention():
                shape = (facts.rows(op.q), op.heads, op.groups, op.dk, op.dv)
                rest = (op.scale, op.window, op.softcap)
                operands = (known[op.q], known[op.k], None if op.v == op.k else known[op.v])
                return terms.of("attention", op.pos, shape, rest, *operands)
            case HLinear():
                m = facts.stack(op.w)
                return terms.of("heads", m, facts.rows(op.x), op.transposed, known[op.x])

    def _mixed(self, op: MixtureOp) -> Term:
        terms, known, facts = self.terms, self.known, self.facts
        match op:
            case Score():
                term = terms.of("score", op.fn, self._size(op.x), known[op.x])
            case TopK():
                groups = (op.groups, op.group_k, op.group_best)
                attributes = (self._size(op.x), op.k, groups, op.bias)
                term = terms.of("topk", *attributes, known[op.x])
            case Renorm():
                weighing = (facts.width(op.ids), op.normalise, op.factor)
                operands = (known[op.x], known[op.ids])
                term = terms.of("renorm", self._size(op.x), *weighing, *operands)
            case XLinear():
                sizes = (self._size(op.x), facts.width(op.ids))
                operands = (known[op.x], known[op.ids])
                term = terms.of("experts", facts.stack(op.w), sizes, *operands)
            case XSum():
                sizes = (self._size(op.x), facts.width(op.w))
                term = terms.of("weighted", sizes, known[op.x], known[op.w])
            case _:
                assert_never(op)
        return term

    def _recurrent(self, op: RecurrentOp) -> Term:
        terms, known = self.terms, self.known
        match op:
            case Decay():
                return terms.of("decay", op.a_log, op.dt, self._size(op.a), known[op.a])
            case Conv() | Delta():
                return terms.of(*self._recurrence(op))

    def _state(self, op: Op) -> Term:
        """The state that a recurrence leaves."""
        if not isinstance(op, Conv | Delta):
            raise TypeError(f"a {type(op).__name__} carries no state")
        return self.terms.of("state", *self._recurrence(op))

    def _recurrence(self, op: Conv | Delta) -> tuple[Hashable, ...]:
        known = self.known
        match op:
            case Conv():
                taps = self.facts.width(op.w)
                return ("conv", op.w, self._size(op.x), taps, known[op.x], known[op.ring])
            case Delta():
                sizes = (self.facts.rows(op.v), op.key_heads, op.heads, op.dk, op.dv, op.scale)
                operands = (op.q, op.k, op.v, op.g, op.beta, op.state)
                return ("delta", sizes, *(known[name] for name in operands))
