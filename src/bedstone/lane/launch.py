"""The launches of a schedule: one call of a library kernel each, as data.

A launch names every tensor, constant and size its kernel takes, so nothing downstream looks at the
graph again. A tensor is read through a `Read` and written through a `Dst`, both of which say which
of its forms is meant: the values (`f32`, or `i32` for indices) or the quantized activation
(`quant`: i8 codes, an f32 scale and an i32 sum of codes for each `QBLOCK` values). What a launch
touches is therefore derived from its fields (`bedstone.lane.touch`), never written twice.
"""

from dataclasses import dataclass
from typing import Literal

from bedstone.graph.step import RopeKind, RowSel
from bedstone.spec.dtype import FormatName

Form = Literal["f32", "quant"]
EltwiseFn = Literal[
    "add", "mul", "add_row", "silu", "gelu_tanh", "sigmoid", "softplus", "scale", "softcap"
]


@dataclass(frozen=True, slots=True)
class Read:
    """A computed or carried tensor, read through one of its forms."""

    tensor: str
    form: Form = "f32"


@dataclass(frozen=True, slots=True)
class Matrix:
    """A constant [n, k], rows by output, in its checkpoint format."""

    const: str
    format: FormatName
    n: int
    k: int


@dataclass(frozen=True, slots=True)
class Version:
    """A table as a write left it: its storage, and the version's name in the graph."""

    table: str
    name: str


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


@dataclass(frozen=True, slots=True)
class ToScratch:
    """The result goes to the rows of a scratch table that start at literal row `row`.

    The table is an ordinary buffer, so the kernel is the one that writes a buffer: it is given the
    address of that row. Makes the table's next `version`.
    """

    table: str
    row: int
    version: str
    f32: bool = True
    quant: bool = False


Dst = ToBuf | ToRows | ToScratch


@dataclass(frozen=True, slots=True)
class Embed:
    """Rows of `table` [vocab, width] at the i32 tensor `ids` [rows]."""

    ids: Read
    table: Matrix
    rows: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Norm:
    """Root-mean-square norm of each `unit` values; with `add`, of `x + add`, kept in `sum`."""

    x: Read
    w: str
    rows: int
    width: int
    unit: int
    eps: float
    plus_one: bool
    dst: Dst
    add: Read | None = None
    sum: ToBuf | None = None


@dataclass(frozen=True, slots=True)
class Quantize:
    """The quantized form of `x`, where its producer did not write it."""

    x: Read
    rows: int
    width: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Product:
    """`x` [rows, m.k] by `m`: a GEMV up to `GEMV_ROWS` rows, a GEMM above."""

    x: Read
    m: Matrix
    rows: int
    dst: Dst
    bias: str | None = None


@dataclass(frozen=True, slots=True)
class GemmPart:
    """One matrix of a product in parts."""

    m: Matrix
    dst: Dst
    bias: str | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """Several products of one `x`; a part that writes table rows comes last."""

    x: Read
    rows: int
    parts: tuple[GemmPart, ...]


@dataclass(frozen=True, slots=True)
class Glu:
    """`act(x gate) * (x up)`."""

    x: Read
    gate: Matrix
    up: Matrix
    act: Literal["silu", "gelu_tanh"]
    rows: int
    dst: Dst


@dataclass(frozen=True, slots=True)
class HeadNorm:
    """A norm of each head before it is rotated."""

    w: str
    eps: float
    plus_one: bool


@dataclass(frozen=True, slots=True)
class RopeSide:
    """One rotation of a launch: `heads` a row of `x`; a side that writes table rows comes last."""

    x: Read
    heads: int
    dst: Dst
    norm: HeadNorm | None = None


@dataclass(frozen=True, slots=True)
class Rope:
    """One rotation, or several at the same positions by the same table.

    Row r of R stands at position `value - R + r` of the param `pos`.
    """

    sides: tuple[RopeSide, ...]
    table: str
    pos: str
    rows: int
    head_dim: int
    rot: int
    kind: RopeKind


@dataclass(frozen=True, slots=True)
class SetRows:
    """`x` [rows, width] into rows of a table, where its producer did not write there."""

    x: Read
    rows: int
    width: int
    dst: ToRows | ToScratch


@dataclass(frozen=True, slots=True)
class Attention:
    """Causal attention of `q` over the cached rows of `k` and `v`.

    `span` is the most cache rows one query attends, `splits` how many pieces that span is cut into.
    """

    q: Read
    k: Version
    v: Version
    pos: str
    rows: int
    heads: int
    groups: int
    dk: int
    dv: int
    scale: float
    window: int | None
    softcap: float | None
    span: int
    splits: int
    dst: Dst


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
class Advance:
    """What the closing arg-max writes besides its result, so that steps chain on the device.

    The token goes to the carried vector `token` at `item`, the next position of the sequence that
    `pos` counts is set, and the run of tokens, which only the host reads, grows by one.
    """

    token: str
    pos: str
    item: int


@dataclass(frozen=True, slots=True)
class ArgMax:
    """The index of the largest of each row's `vocab` values; ties take the lower index."""

    x: Read
    rows: int
    vocab: int
    dst: ToBuf
    advances: tuple[Advance, ...]


@dataclass(frozen=True, slots=True)
class Eltwise:
    """`fn` over `rows * width` values of `a` (and `b`); `row` is the constant of `add_row`.

    `by` is the factor of `scale` or the cap of `softcap`.
    """

    fn: EltwiseFn
    a: Read
    rows: int
    width: int
    dst: ToBuf
    b: Read | None = None
    row: str | None = None
    by: float | None = None


Launch = (
    Embed
    | Norm
    | Quantize
    | Product
    | Parts
    | Glu
    | Rope
    | SetRows
    | Attention
    | TakeRow
    | ArgMax
    | Eltwise
)
