"""The vocabulary of operands: what a kernel parameter means, before anybody knows where it lies."""

from dataclasses import dataclass
from typing import Literal

from bedstone.lane.launch import Rows

QuantPiece = Literal["codes", "scales", "sums"]
Role = Literal[
    "token", "position", "slot", "pages", "line",
    "next", "error", "chain.token", "chain.position", "chain.slot", "run",
    "temperature", "top_k", "top_p", "min_p", "seed",
    "chain.temperature", "chain.top_k", "chain.top_p", "chain.min_p", "chain.seed",
    "edits", "edit_token", "edit_scale", "edit_add", "restricted", "allowed", "report",
    "scores", "logprob", "top_token", "top_logprob",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Values:
    """The f32 or i32 values of a tensor, from value `start` of row `row` on."""

    tensor: str
    row: int = 0
    start: int = 0


@dataclass(frozen=True, slots=True)
class Quant:
    """One piece of the quantized form of a tensor, from row `row` on."""

    tensor: str
    piece: QuantPiece
    row: int = 0


@dataclass(frozen=True, slots=True)
class Weight:
    """A checkpoint matrix in its own format."""

    const: str


@dataclass(frozen=True, slots=True)
class Vector:
    """A checkpoint vector as f32, whatever its format."""

    const: str


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rope table's cosines or sines."""

    table: str
    of: Literal["cos", "sin"]


@dataclass(frozen=True, slots=True)
class Cache:
    """The storage of a carried table."""

    table: str


@dataclass(frozen=True, slots=True)
class Io:
    """A buffer of the step's protocol, by its role."""

    role: Role


@dataclass(frozen=True, slots=True)
class Count:
    """The rows of the launch: at most those given, which a param may lower."""

    rows: Rows


@dataclass(frozen=True, slots=True)
class Elements:
    """The values of the launch: its rows times `width`."""

    rows: Rows
    width: int


@dataclass(frozen=True, slots=True)
class Int:
    """A literal i32."""

    value: int


@dataclass(frozen=True, slots=True)
class Real:
    """A literal f32."""

    value: float


@dataclass(frozen=True, slots=True)
class Size:
    """A size no launch knows.

    Tokens of a page, pages of a sequence, rows of the whole step, edits of a row of logits.
    """

    of: Literal["page", "pages_width", "step_rows", "edits"]


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Radians a position for each pair of a rotation, passed by value."""

    inv_freq: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole buffer of the manifest, by its own name."""

    buffer: str


Operand = (
    Values
    | Quant
    | Weight
    | Vector
    | Rotation
    | Cache
    | Io
    | Count
    | Elements
    | Int
    | Real
    | Size
    | Frequencies
    | Whole
)
Operands = dict[str, Operand]
