"""What the ops that move values ask of their inputs and attributes."""

from typing import assert_never

from bedstone.graph.check_scope import Rows, Scope
from bedstone.graph.step import AtParam, Concat, Part, PlacedOp, Row, RowSel, Set


def shapes(op: PlacedOp, scope: Scope) -> Rows:
    """What the shape of the result leans on."""
    match op:
        case Row():
            rows = [scope.value(op.x)]
        case Part():
            rows = _part(op, scope)
        case Concat():
            rows = _concat(op, scope)
        case Set():
            rows = [scope.table(op.table), scope.value(op.x), _columns(op, scope)]
        case _:
            assert_never(op)
    return rows


def _part(op: Part, scope: Scope) -> Rows:
    width = scope.known[op.x].width
    sized = op.units >= 1 and op.width >= 1 and op.offset >= 0
    windows = f"{op.units} windows of {op.width} at {op.offset}"
    inside = (op.units - 1) * op.pitch + op.offset + op.width <= width
    apart = op.units == 1 or op.offset + op.width <= op.pitch
    return [
        scope.value(op.x),
        (sized, f"takes {windows}"),
        (apart, f"{windows} do not lie within units of {op.pitch}"),
        (inside, f"{windows}, {op.pitch} apart, lie outside {width} values"),
    ]


def _concat(op: Concat, scope: Scope) -> Rows:
    a, b, units = scope.known[op.a], scope.known[op.b], op.units
    whole = units >= 1 and a.width % units == 0 and (op.shared or b.width % units == 0)
    return [
        scope.value(op.a),
        scope.value(op.b),
        (a.rows == b.rows, f"`{op.a}` has {a.rows} rows but `{op.b}` has {b.rows}"),
        (whole, f"{a.width} and {b.width} values are not {units} units"),
    ]


def _columns(op: Set, scope: Scope) -> tuple[bool, str]:
    """That a row of `x` is a row of the table, or lies within one."""
    room, width = scope.known[op.table].width, scope.known[op.x].width
    if op.column is None:
        return scope.wide(op.x, room)
    inside = op.column >= 0 and op.column + width <= room
    return inside, f"columns {op.column} to {op.column + width} lie outside {room}"


def attributes(op: PlacedOp, scope: Scope) -> Rows:
    """What else an op asks for, where its shapes are right."""
    match op:
        case Row():
            return _selected(op.at, 1, scope.known[op.x].rows, scope)
        case Set():
            return _selected(op.at, scope.known[op.x].rows, scope.known[op.table].rows, scope)
        case _:
            return []


def _selected(at: RowSel, rows: int, room: int, scope: Scope) -> Rows:
    """That `rows` rows at `at` lie within `room` rows, as far as the graph alone can tell."""
    if isinstance(at, AtParam):
        return [scope.param(at.param), (rows <= room, f"{rows} rows do not fit {room}")]
    inside = at.row >= 0 and at.row + rows <= room
    return [(inside, f"rows {at.row} to {at.row + rows} lie outside {room} rows")]
