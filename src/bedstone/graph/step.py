"""The StepGraph: one step of one model, in one form, before lowering.

A graph is a list of pure ops over named tensors in SSA form, plus in-place writes (`Set`) to
tables. A write yields a new *version* of its table: the version's name is the op's `out`, its
storage the table's. Reading an older version after a newer one was made is illegal.

Three forms: `decode` (one row), `chunk` (rows of one sequence, a prefill piece) and `batch` (one
row for each of several sequences). Where `row_param` names a param, `rows` is the most rows a step
takes and the param says how many it takes now; a row at a literal index then counts from the start
only.

Every field that names a tensor is typed `Ref` or `Out` (or holds one: optional, a tuple, a nested
dataclass): `graph.refs` derives what an op reads and makes from the types, so a new op needs no
second table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NewType

from bedstone.spec.dtype import FormatName

Ref = NewType("Ref", str)
"""The name of a tensor an op reads: a value, a constant, a carried vector or a table version."""

Out = NewType("Out", str)
"""The name of a tensor an op makes."""

FormName = Literal["decode", "chunk", "batch"]
ActFn = Literal["silu", "gelu_tanh", "sigmoid", "softplus"]
RopeKind = Literal["neox", "pair"]


@dataclass(frozen=True, slots=True)
class Const:
    """A checkpoint matrix or vector, by its canonical (Hugging Face) name.

    `shape` is [n, k] for a matrix (rows by output) or [n] for a vector.
    """

    name: str
    format: FormatName
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table [capacity, width] written in place.

    It is carried from step to step (a layer's cached keys), or, as `scratch`, lives within one step
    (the attention rows of a batch) and holds nothing when the step begins.
    """

    name: str
    capacity: int
    width: int
    scratch: bool = False


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
class Part:
    """A strided window: unit `u` begins at `u * pitch + offset` of each row (elements)."""

    pitch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Embed:
    """Rows of `table` [vocab, width] at `ids` [rows] → [rows, width]."""

    ids: Ref
    table: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Norm:
    """Root-mean-square norm of each `unit` values, times `w` (or `1 + w`)."""

    x: Ref
    w: Ref
    out: Out
    eps: float
    unit: int
    plus_one: bool = False


@dataclass(frozen=True, slots=True)
class Linear:
    """`x` [rows, k] by `w` [n, k] transposed, plus `bias` [n] → [rows, n]."""

    x: Ref
    w: Ref
    out: Out
    bias: Ref | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """`a + b`, equal shapes (a constant vector `b` broadcasts over rows)."""

    a: Ref
    b: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Mul:
    """`a * b`, equal shapes."""

    a: Ref
    b: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Act:
    """`fn(x)` elementwise."""

    x: Ref
    out: Out
    fn: ActFn


@dataclass(frozen=True, slots=True)
class Scale:
    """`x * by`."""

    x: Ref
    out: Out
    by: float


@dataclass(frozen=True, slots=True)
class Softcap:
    """`cap * tanh(x / cap)`."""

    x: Ref
    out: Out
    cap: float


@dataclass(frozen=True, slots=True)
class Row:
    """One row of `x`: a view at a literal index, a copy where a 1-based param names it."""

    x: Ref
    out: Out
    at: RowSel


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotate the first `rot` values of each head by the row's position.

    `neox` pairs value i with i + rot/2, `pair` pairs 2i with 2i + 1. Row r of R stands at position
    `value - R + r` of the param `pos`.
    """

    x: Ref
    out: Out
    rope: str
    pos: str
    heads: int
    head_dim: int
    rot: int
    kind: RopeKind


@dataclass(frozen=True, slots=True)
class Set:
    """Write `x` into rows of `table` in place; `out` is the table's next version."""

    table: Ref
    x: Ref
    out: Out
    at: RowSel


@dataclass(frozen=True, slots=True)
class Attention:
    """Causal attention of `q` [rows, heads * dk] over cached `k` [len, groups * dk] and `v`.

    Row r of R sees cache rows up to `value - R + r` of the param `pos`; with a `window` w only the
    last w of them. Scores are `scale * q.k`, capped to `softcap` where given, before the softmax.
    """

    q: Ref
    k: Ref
    v: Ref
    out: Out
    pos: str
    heads: int
    groups: int
    dk: int
    dv: int
    scale: float
    window: int | None = None
    softcap: float | None = None


@dataclass(frozen=True, slots=True)
class ArgMax:
    """The index of the largest value of each row; ties take the lower index. Closes a step."""

    x: Ref
    out: Out


Op = (
    Embed
    | Norm
    | Linear
    | Add
    | Mul
    | Act
    | Scale
    | Softcap
    | Row
    | Rope
    | Set
    | Attention
    | ArgMax
)


@dataclass(frozen=True, slots=True)
class Value:
    """Shape of a computed tensor: [rows, width]; `units` divides the width (heads)."""

    rows: int
    width: int
    dtype: Literal["f32", "i32"] = "f32"
    units: int = 1


@dataclass(frozen=True, slots=True)
class StepGraph:
    """One step of a model in one form.

    `params` are i32 numbers given with each run (`pos`: the length after the step; in a batch
    `pos.0`, `pos.1`, …). `outputs` are tensors a caller reads (`logits`, `next`). `values` holds
    the shape of what each op makes (`graph.infer`).
    """

    model: str
    form: FormName
    rows: int
    ops: tuple[Op, ...]
    consts: Mapping[str, Const]
    tables: Mapping[str, Table]
    carried: Mapping[str, Carried]
    ropes: Mapping[str, RopeTable]
    params: tuple[str, ...]
    outputs: tuple[str, ...]
    row_param: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
