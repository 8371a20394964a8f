"""Where the result of an op goes, and in which form a product reads."""

from bedstone.graph.step import Fixed, RowSel, Set
from bedstone.lane.classes import Into, IntoEach, Single
from bedstone.lane.facts import Facts
from bedstone.lane.operand import (
    Columns,
    Dst,
    Matrix,
    Read,
    Stack,
    ToBuf,
    ToEach,
    ToRows,
    ToScratch,
)


def destination(op: Single, facts: Facts) -> Dst:
    """Where the result of an op goes: rows of a table, if it is made to write there."""
    if isinstance(op, IntoEach):
        versions = zip(op.tables, op.ats, (op.out, *op.others), strict=True)
        return ToEach(
            tuple(_rows(facts.storage[t], at, out, None, facts) for t, at, out in versions)
        )
    if not isinstance(op, Into | Set):
        return ToBuf(op.out)
    table = facts.storage[op.table]
    if facts.scratch(op.table) and isinstance(op.at, Fixed):
        return ToScratch(table, op.at.row, op.out)
    return _rows(table, op.at, op.out, op.column, facts)


def _rows(table: str, at: RowSel, version: str, column: int | None, facts: Facts) -> ToRows:
    columns = None if column is None else Columns(column, facts.width(table))
    return ToRows(table, at, version, columns)


def factor(x: str, matrix: Matrix | Stack, facts: Facts) -> Read:
    """The input of a product, in the form its matrix asks for."""
    return Read(x, "quant" if facts.reads_quant(matrix, x) else "f32")
