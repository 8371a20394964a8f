"""Launches that move values without changing one."""

from dataclasses import dataclass

from bedstone.graph.step import RowSel
from bedstone.lane.operand import Read, Rows, ToBuf, ToRows, ToScratch, Version


@dataclass(frozen=True, slots=True)
class SetRows:
    """`x` [rows, width] into rows of a table, where its producer did not write there."""

    x: Read
    rows: int
    width: int
    dst: ToRows | ToScratch


@dataclass(frozen=True, slots=True)
class TakeRow:
    """One row of `x` [rows, width]: the one a param names (1-based), or one at a literal index.

    The latter is a copy: of a row whose table is written over before its last reader, or of a value
    into a row of a scratch table.
    """

    x: Read
    at: RowSel
    rows: int
    width: int
    dst: ToBuf | ToScratch


@dataclass(frozen=True, slots=True)
class TakePart:
    """A part of every row of a wider tensor, side by side, where a reader cannot follow it.

    Unit `u` of a row is the `width` values at `u * pitch + offset` of the `row` values of `x`.
    """

    x: Read
    rows: Rows
    row: int
    pitch: int
    offset: int
    units: int
    width: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Concat:
    """Units of `a` and of `b` side by side; a `shared` b is one unit, which every unit ends in."""

    a: Read
    b: Read
    rows: Rows
    units: int
    widths: tuple[int, int]
    shared: bool
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Gather:
    """Columns [first, first + width) of a cached table's rows, in the order of positions."""

    table: Version
    first: int
    width: int
    pitch: int
    rows: Rows
    dst: ToBuf
