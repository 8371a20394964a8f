"""What the ops of a step name: tensors, tables, rotations, and rows of them."""

from dataclasses import dataclass
from typing import Literal, NewType

from bedstone.spec.dtype import FormatName

Ref = NewType("Ref", str)
"""The name of a tensor an op reads: a value, a constant, a carried vector or a table version."""

Out = NewType("Out", str)
"""The name of a tensor an op makes."""


@dataclass(frozen=True, slots=True)
class Const:
    """A checkpoint matrix or vector, by its canonical name.

    `shape` is [n, k] for a matrix (rows by output), [n] for a vector, or [e, n, k] for a stack of
    matrices, one for each expert or head.
    """

    name: str
    format: FormatName
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table [capacity, width] written in place.

    It is carried from step to step (a layer's cached keys), or, as `scratch`, lives within one step
    (the attention rows of a batch) and holds nothing when the step begins. With `zeros` it holds
    zeros when its sequence begins (a recurrent state), else nothing.
    """

    name: str
    capacity: int
    width: int
    scratch: bool = False
    zeros: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """A small i32 vector [rows] carried from step to step: the token ids a step reads."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class RopeTable:
    """Rotation frequencies: one per pair (radians a position), and a factor on cos and sin."""

    name: str
    inv_freq: tuple[float, ...]
    attention_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class AtParam:
    """Rows that end at a param.

    The param is the length after the write (1-based), so `rows` rows start at `value - rows`.
    """

    param: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """Rows that start at a literal index."""

    row: int


RowSel = AtParam | Fixed


@dataclass(frozen=True, slots=True)
class Value:
    """Shape of a computed tensor: [rows, width]; `units` divides the width (heads)."""

    rows: int
    width: int
    dtype: Literal["f32", "i32"] = "f32"
    units: int = 1
