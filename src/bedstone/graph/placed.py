"""Ops that move values without changing one: rows, windows, joins, and writes to tables."""

from dataclasses import dataclass

from bedstone.graph.tensor import Out, Ref, RowSel


@dataclass(frozen=True, slots=True)
class Row:
    """One row of `x`: a view at a literal index, a copy where a 1-based param names it."""

    x: Ref
    out: Out
    at: RowSel


@dataclass(frozen=True, slots=True)
class Part:
    """A strided window of every row: unit `u` is the `width` values at `u * pitch + offset`.

    [rows, units * width]: a view, where its reader can follow one.
    """

    x: Ref
    out: Out
    pitch: int
    offset: int
    width: int
    units: int


@dataclass(frozen=True, slots=True)
class Concat:
    """Units of `a` and of `b` side by side → [rows, units * (wa + wb)].

    Where `b` is `shared` it is one unit, which every unit ends in.
    """

    a: Ref
    b: Ref
    out: Out
    units: int
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Write `x` into rows of `table` in place; `out` is the table's next version.

    With a `column` the values go there in each row, and the others stay.
    """

    table: Ref
    x: Ref
    out: Out
    at: RowSel
    column: int | None = None


PlacedOp = Row | Part | Concat | Set
