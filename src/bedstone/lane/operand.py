"""What a launch's fields name: tensors read and written, constants, tables, and rows.

A tensor is read through a `Read` and written through a destination, both of which say which of its
forms is meant: the values (`f32`, or `i32` for indices) or the quantized activation (`quant`: i8
codes, an f32 scale and an i32 sum of codes for each `QBLOCK` values).
"""

from dataclasses import dataclass
from typing import Literal

from bedstone.graph.step import RowSel
from bedstone.spec.dtype import FormatName

Form = Literal["f32", "quant"]


@dataclass(frozen=True, slots=True)
class Upto:
    """As many rows as a param says, `most` at most: those of a cache that hold something."""

    most: int
    param: str


Rows = int | Upto


def most_rows(rows: Rows) -> int:
    """The most rows a launch takes."""
    return rows.most if isinstance(rows, Upto) else rows


@dataclass(frozen=True, slots=True)
class Window:
    """A part of every row of a wider tensor.

    Value i of row r lies `r * row + i // width * unit + i % width` values after the first.
    """

    row: int
    unit: int
    width: int


@dataclass(frozen=True, slots=True)
class Read:
    """A computed or carried tensor, or one `row` of it, read through one of its forms.

    Where the tensor is a part of a wider one and read in place, `window` says how it lies there.
    """

    tensor: str
    form: Form = "f32"
    window: Window | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """A constant [n, k], rows by output, in its checkpoint format.

    What it multiplies may be `rounded` to its type.
    """

    const: str
    format: FormatName
    n: int
    k: int
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """A constant [count, n, k]: a matrix for each expert or head, in its checkpoint format.

    What it multiplies may be `rounded` to its type.
    """

    const: str
    format: FormatName
    count: int
    n: int
    k: int
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    """A table as a write left it: its storage, and the version's name in the graph."""

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class Carry:
    """A sequence's recurrent state, read as version `before` and left as version `after`."""

    table: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Where in a table's rows, `pitch` values wide, a result goes."""

    first: int
    pitch: int


@dataclass(frozen=True, slots=True)
class ToBuf:
    """The result goes to the tensor's own buffers, in the forms somebody reads."""

    tensor: str
    f32: bool = True
    quant: bool = False


@dataclass(frozen=True, slots=True)
class ToRows:
    """The result goes to rows of a table in place, which makes the table's next `version`."""

    table: str
    at: RowSel
    version: str
    columns: Columns | None = None


@dataclass(frozen=True, slots=True)
class ToScratch:
    """The result goes to the rows of a buffer that start at literal row `row`.

    The buffer is that of a scratch table, whose next `version` this makes, or of a tensor made row
    by row. The kernel is the one that writes a whole buffer: it is given the address of that row.
    """

    table: str
    row: int
    version: str
    f32: bool = True
    quant: bool = False


@dataclass(frozen=True, slots=True)
class ToEach:
    """Row r of the result goes to the table of sequence r of a batch."""

    rows: tuple[ToRows, ...]


Dst = ToBuf | ToRows | ToScratch | ToEach
