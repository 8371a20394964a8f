"""What a step computes, as symbols: equal terms are equal values, bit for bit.

A term is the number of an expression: an operation, its attributes and sizes, and the terms it is
applied to. `Terms` gives the same number to the same expression, so comparing a schedule with its
graph is comparing numbers. Both sides build terms with the same constructors, from what each itself
says, and share nothing else.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from bedstone.graph.step import Fixed, RowSel
from bedstone.lane.layout import Layout
from bedstone.lane.operand import Matrix, Rows

Term = int
Size = tuple[int, int]
Pair = tuple[Term, Term]


class _Place(NamedTuple):
    """Where values lie in a tensor of another term, `size` rows and values wide."""

    of: Term
    size: Size
    layout: Layout


class _Rowwise(NamedTuple):
    """A function of each value, so that a row of it is the function of a row."""

    name: str
    attribute: Hashable
    width: int
    operands: tuple[Term, ...]


class _Written(NamedTuple):
    """A table after rows were written, `rows` of them from `start`."""

    start: int
    rows: int
    before: Term
    x: Term


class Terms:
    """Numbers expressions: the same for the same expression, whoever asks."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Hashable, ...], Term] = {}
        self._places: dict[Term, _Place] = {}
        self._rowwise: dict[Term, _Rowwise] = {}
        self._written: dict[Term, _Written] = {}

    def of(self, *expression: Hashable) -> Term:
        """The number of an expression: its operation, attributes and operands."""
        return self._numbers.setdefault(expression, len(self._numbers))

    def source(self, name: str) -> Term:
        """What a carried vector or a table holds when the step begins."""
        return self.of("source", name)

    def pair(self, fn: str, a: Term, b: Term, size: Size) -> Term:
        """The sum or product of two tensors; their order does not change a bit."""
        return self._each(_Rowwise(fn, None, size[1], tuple(sorted((a, b)))), size[0])

    def map(self, fn: str, attribute: Hashable, x: Term, size: Size) -> Term:
        """A function of each value of `x`."""
        return self._each(_Rowwise(fn, attribute, size[1], (x,)), size[0])

    def _each(self, made: _Rowwise, rows: int) -> Term:
        size = (rows, made.width)
        term = self.of(made.name, made.attribute, size, *made.operands)
        self._rowwise.setdefault(term, made)
        return term

    def linear(self, x: Term, m: Matrix, rows: Rows, bias: str | None) -> Term:
        """A product; a bias is a constant row added to it."""
        product = self.of("linear", m, rows, x)
        return product if bias is None else self.of("add_row", bias, (rows, m.n), product)

    def set(self, at: RowSel, column: int | None, rows: tuple[int, int], tables: Pair) -> Term:
        """A table with rows of a tensor written: how many of how many; the table and the tensor."""
        count, capacity = rows
        if at == Fixed(0) and column is None and count == capacity:
            return tables[1]
        term = self.of("set", at, column, *tables)
        if isinstance(at, Fixed) and column is None:
            self._written.setdefault(term, _Written(at.row, count, *tables))
        return term

    def row(self, x: Term, at: RowSel, size: Size) -> Term:
        """One row of `x`, which is `x` where it has one."""
        if not isinstance(at, Fixed):
            return self.of("row", at, size, x)
        return x if size[0] == 1 and at.row == 0 else self._row(x, at.row, size)

    def _row(self, x: Term, row: int, size: Size) -> Term:
        """A row of values made row by row is made of rows."""
        if x in self._written:
            written = self._written[x]
            if 0 <= row - written.start < written.rows:
                return self.row(written.x, Fixed(row - written.start), (written.rows, size[1]))
            return self._row(written.before, row, size)
        if x in self._rowwise:
            made = self._rowwise[x]
            rows = tuple(self.row(one, Fixed(row), size) for one in made.operands)
            if len(rows) == 2:
                return self.pair(made.name, *rows, (1, size[1]))
            return self.map(made.name, made.attribute, rows[0], (1, size[1]))
        return self.view(x, size, Layout.dense(*size).take_row(row))

    def view(self, x: Term, size: Size, layout: Layout) -> Term:
        """The values that lie in the memory of `x` as `layout` says; `size` is that of `x`."""
        if layout == Layout.dense(*size):
            return x
        if x in self._places:
            place = self._places[x]
            composed = _compose(place.layout, layout)
            if composed is not None:
                return self.view(place.of, place.size, composed)
        if layout.rows == 1 and (x in self._written or x in self._rowwise):
            row, start = divmod(layout.offset, size[1])
            if size[0] > 1:
                inside = replace(layout, offset=start)
                return self.view(self._row(x, row, size), (1, size[1]), inside)
        term = self.of("view", layout, size, x)
        self._places.setdefault(term, _Place(x, size, layout))
        return term


def _compose(inner: Layout, outer: Layout) -> Layout | None:
    """Where values lie that lie as `outer` says in what lies as `inner` says; None if scattered."""
    width = inner.units * inner.width
    row, start = divmod(outer.offset, width)
    runs = outer.rows == 1 or outer.row % width == 0
    last = start + (outer.units - 1) * outer.unit + outer.width
    if not runs or last > width:
        return None
    total = outer.units * outer.width
    step = total if outer.rows == 1 else inner.row * (outer.row // width)
    if outer.units == 1 and outer.width == width:
        at = inner.offset + row * inner.row
        return Layout(at, outer.rows, inner.units, step, inner.unit, inner.width)
    if inner.units > 1:
        return None
    return replace(outer, offset=inner.offset + row * inner.row + start, row=step)
