"""Launches on whole rows: embedding, norms, products, elementwise functions, closes of a step."""

from dataclasses import dataclass
from typing import Literal

from bedstone.lane.operand import Dst, Matrix, Read, Rows, ToBuf

GateFn = Literal["silu", "gelu_tanh"]
EltwiseFn = Literal[
    "add", "mul", "add_row", "silu", "gelu_tanh", "sigmoid", "softplus", "scale", "softcap"
]


@dataclass(frozen=True, slots=True)
class Embed:
    """Rows of `table` [vocab, width] at the i32 tensor `ids` [rows], times `by`."""

    ids: Read
    table: Matrix
    rows: int
    dst: ToBuf
    by: float | None = None


@dataclass(frozen=True, slots=True)
class PreNorm:
    """A norm of a whole addend before it is added."""

    w: str
    eps: float
    plus_one: bool


@dataclass(frozen=True, slots=True)
class Norm:
    """Root-mean-square norm of each `unit` values.

    With `add`, of `x + add`, kept in `sum`; with `pre` the addend is normed first.
    """

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
    pre: PreNorm | None = None


@dataclass(frozen=True, slots=True)
class L2Norm:
    """Each `unit` values over their length."""

    x: Read
    rows: int
    width: int
    unit: int
    eps: float
    dst: Dst


@dataclass(frozen=True, slots=True)
class GatedNorm:
    """`norm(x) * silu(gate)`, the norm of each `unit` values."""

    x: Read
    w: str
    gate: Read
    rows: int
    width: int
    unit: int
    eps: float
    plus_one: bool
    dst: Dst


@dataclass(frozen=True, slots=True)
class Quantize:
    """The quantized form of `x`, where its producer did not write it."""

    x: Read
    rows: Rows
    width: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Product:
    """`x` [rows, m.k] by `m`: a GEMV up to `GEMV_ROWS` rows, a GEMM above.

    Then `bias` is added to it, then `add`; or, with `cap`, each value is bent to stay within it.
    `rows_a_warp` outputs are one warp's, where the device has warps.
    """

    x: Read
    m: Matrix
    rows: Rows
    dst: Dst
    bias: str | None = None
    rows_a_warp: int = 1
    add: Read | None = None
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class GemmPart:
    """One matrix of a product in parts."""

    m: Matrix
    dst: Dst
    bias: str | None = None
    rows_a_warp: int = 1


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
    act: GateFn
    rows: int
    dst: Dst
    rows_a_warp: int = 1


@dataclass(frozen=True, slots=True)
class Advance:
    """What closes a step writes besides its result, so that steps chain on the device.

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
class Sample:
    """A token of each row's `vocab` logits, drawn as the row's settings say; -1 for a bad row."""

    x: Read
    rows: int
    vocab: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Finish:
    """The step's tokens are those drawn, one a row."""

    x: Read
    rows: int
    dst: ToBuf
    advances: tuple[Advance, ...]


@dataclass(frozen=True, slots=True)
class Eltwise:
    """`fn` over `rows * width` values of `a` (and `b`); `row` is the constant of `add_row`.

    `by` is the factor of `scale` or the cap of `softcap`.
    """

    fn: EltwiseFn
    a: Read
    rows: Rows
    width: int
    dst: ToBuf
    b: Read | None = None
    row: str | None = None
    by: float | None = None
