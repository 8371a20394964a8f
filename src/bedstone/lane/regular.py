"""Whether a launch over sequences is what its one call does: operands in equal steps of memory.

The call takes the first member's addresses and a row for each member. So member i must read and
write where its own operands start plus i rows, and row i must be sequence i wherever the kernel
asks for the sequence of a row: its position, its slot in a table, its state.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bedstone.graph.step import AtParam
from bedstone.lane.facts import Facts
from bedstone.lane.launch import (
    Carry,
    OneLaunch,
    Read,
    Sequences,
    ToBuf,
    ToEach,
    ToRows,
    ToScratch,
    Version,
)
from bedstone.lane.schedule import Piece, Schedule, code_sizes
from bedstone.lane.touch import Leaf, leaves, rewrite
from bedstone.library.coding import Coding


def irregular(launch: Sequences, schedule: Schedule, facts: Facts) -> Iterator[str]:
    """What keeps the members from being one call."""
    if schedule.form != "batch" or len(launch.members) != schedule.rows:
        yield f"joins {len(launch.members)} sequences, not {schedule.rows}"
        return
    if getattr(launch.whole, "rows", None) != schedule.rows:
        yield "has no row for each sequence"
    outline = _outline(launch.whole)
    for number, member in enumerate(launch.members):
        if getattr(member, "rows", None) != 1 or _outline(member) != outline:
            yield f"does something else for sequence {number}"
            continue
        if getattr(member, "pos", facts.position(number)) != facts.position(number):
            yield f"takes other positions for sequence {number}"
        pairs = zip(leaves(launch.whole), leaves(member), strict=True)
        if not all(_follows(whole, one, number, schedule) for whole, one in pairs):
            yield f"finds operands of sequence {number} elsewhere"


def _outline(launch: OneLaunch) -> Any:  # noqa: ANN401 - a launch, whichever
    """A launch without its rows, its positions and what its leaves name."""
    bare: Any = replace(launch, rows=0)
    if hasattr(bare, "pos"):
        bare = replace(bare, pos="")
    return rewrite(bare, _blank)


def _blank(leaf: Leaf) -> Leaf:
    match leaf:
        case Read(_, form):
            blank: Leaf = Read("", form)
        case ToBuf(_, f32, quant):
            blank = ToBuf("", f32, quant)
        case ToScratch(_, _, _, f32, quant):
            blank = ToScratch("", 0, "", f32, quant)
        case ToRows(_, _, _, columns):
            blank = ToRows("", AtParam(""), "", columns)
        case Version():
            blank = Version("", "")
        case Carry():
            blank = Carry("", "", "")
        case _:
            blank = ToEach(())
    return blank


def _follows(whole: Leaf, one: Leaf, number: int, schedule: Schedule) -> bool:
    """Whether a member's operand is row `number` of the whole's."""
    match whole, one:
        case Read(), Read():
            return _read_follows(whole, one, number, schedule)
        case ToBuf(tensor), ToBuf(other):
            rows = (_starts(tensor, 0, schedule), _starts(other, 0, schedule))
            width = schedule.buffers[tensor].width if tensor in schedule.buffers else 0
            return _apart(*rows, number * width, schedule.coding)
        case ToScratch(table, row), ToScratch(other, at):
            return table == other and at == row + number
        case ToRows(table, _, _), ToRows(other, at, _):
            mine = at == AtParam(f"pos.{number}")
            return mine and _sequence(table, other, number)
        case (Version(table), Version(other)) | (Carry(table), Carry(other)):
            return _sequence(table, other, number)
        case _:
            return False


def _read_follows(whole: Read, one: Read, number: int, schedule: Schedule) -> bool:
    buffer = schedule.buffers.get(whole.tensor)
    if buffer is None or one.tensor not in schedule.buffers:
        return False
    step = buffer.width if whole.window is None else whole.window.row
    units = [None if r.window is None else (r.window.unit, r.window.width) for r in (whole, one)]
    dense = (buffer.width, buffer.width)
    same = (units[0] or dense) == (units[1] or dense)
    rows = [_starts(r.tensor, r.row or 0, schedule) for r in (whole, one)]
    return same and _apart(rows[0], rows[1], number * step, schedule.coding)


def _apart(first: dict[Piece, int], other: dict[Piece, int], values: int, coding: Coding) -> bool:
    """Whether two rows lie that many values apart in every form that both have."""
    sizes = code_sizes(values, coding) | {"f32": 4 * values}
    return first.keys() == other.keys() and all(
        other[piece] == start + sizes[piece] for piece, start in first.items()
    )


def _starts(tensor: str, row: int, schedule: Schedule) -> dict[Piece, int]:
    """The byte of the arena at which each form of a row of a tensor starts."""
    buffer = schedule.buffers.get(tensor)
    if buffer is None:
        return {}
    home = schedule.buffers.get(buffer.view_of or tensor, buffer)
    pitch = buffer.width if buffer.window is None else buffer.window.row
    offset = buffer.offset + row * pitch
    found: dict[Piece, int] = {}
    if home.f32 is not None:
        found["f32"] = home.f32.offset + 4 * offset
    quant = buffer.quant or home.quant
    if quant is not None:
        at = row * buffer.width if buffer.quant is not None else offset
        sizes = code_sizes(at, schedule.coding)
        found |= {piece: slot.offset + sizes[piece] for piece, slot in quant.pieces()}
    return found


def _sequence(table: str, other: str, number: int) -> bool:
    """Whether two tables are those of the first sequence and of another one."""
    stem = table.removesuffix(".0")
    return stem != table and other == f"{stem}.{number}"
