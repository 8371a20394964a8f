"""How a tensor lies inside another one: rows of it, or a part of every row."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bedstone.graph.step import Fixed, Part, Row
from bedstone.lane.operand import Window
from bedstone.library.coding import Coding


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each value of a tensor [rows, units * width] lies in the memory of another.

    Value i of row r lies `offset + r * row + i // width * unit + i % width` values in.
    """

    offset: int
    rows: int
    units: int
    row: int
    unit: int
    width: int

    @classmethod
    def dense(cls, rows: int, width: int) -> "Layout":
        """The layout of a tensor in its own memory."""
        return cls(0, rows, 1, width, width, width)

    @property
    def contiguous(self) -> bool:
        """Whether the values lie side by side, in order."""
        return self.units == 1 and self.row == self.width

    @property
    def window(self) -> Window | None:
        """What a reader must know beside the address; nothing where the values lie in order."""
        return None if self.contiguous else Window(self.row, self.unit, self.width)

    @property
    def end(self) -> int:
        """The first value after all of the tensor's."""
        last = (self.rows - 1) * self.row + (self.units - 1) * self.unit
        return self.offset + last + self.width

    def whole_blocks(self, coding: Coding) -> bool:
        """Whether the tensor is made of whole blocks of the other's coded form."""
        steps = () if self.contiguous else (self.row, self.unit)
        return coding.whole(self.offset, self.width, *steps)

    def take_row(self, at: int) -> "Layout":
        """One row."""
        start = self.offset + at * self.row
        return replace(self, offset=start, rows=1, row=self.units * self.width)

    def take_part(self, part: Part) -> "Layout | None":
        """A part of every row; None where rows are no runs of values to begin with."""
        if self.units > 1:
            return None
        start = self.offset + part.offset
        if part.units == 1 or part.pitch == part.width:
            units, unit, width = 1, part.units * part.width, part.units * part.width
        else:
            units, unit, width = part.units, part.pitch, part.width
        row = units * width if self.rows == 1 else self.row
        return Layout(start, self.rows, units, row, unit, width)


@dataclass(frozen=True, slots=True)
class View:
    """A tensor that lies in the memory of `parent`, which is no view itself."""

    parent: str
    layout: Layout


def view_of(op: Row | Part, base: View) -> View | None:
    """Where the result of `op` lies, if what it reads lies at `base`; None if it must be copied."""
    if isinstance(op, Part):
        layout = base.layout.take_part(op)
    else:
        layout = base.layout.take_row(op.at.row) if isinstance(op.at, Fixed) else None
    return None if layout is None else View(base.parent, layout)


def memory_of(name: str, views: Mapping[str, View]) -> str:
    """The tensor whose memory holds the values of `name`."""
    view = views.get(name)
    return name if view is None else view.parent
