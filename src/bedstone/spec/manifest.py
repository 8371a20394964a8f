"""The v7 manifest as frozen types: what a model's program is, word for word as the schema names it.

Levels, outermost first: a *Program* is a list of *Calls*; a Call binds an *Op* to buffers, states
and scalars; an Op is an interface and the *Launches* that implement it; a Launch is one entry of a
*Module* with a grid. A *Buffer* is a typed tensor, a *State* memory that outlives a call, a *Var*
a number the caller gives with each run. Nothing here checks a rule: `bedstone.spec.codec` reads and
writes the types, `bedstone.verify` judges them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bedstone.spec.dtype import DType

SCHEMA_VERSION = 7

Axis = Literal["rows", "groups", "ranks"]
BufferKind = Literal["input", "output", "inout", "weight", "source", "workspace", "carry", "peer"]
Placement = Literal["device", "host"]
Fill = Literal[
    "token", "position", "valid", "slot", "seq_len", "cu_seqlens", "blocks",
    "temperature", "top_k", "top_p", "min_p", "seed",
    "tokens", "count", "error",
]  # fmt: skip
TmaDType = Literal[
    "u8", "u16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "tf32", "u4", "u4packed"
]
Direction = Literal["in", "out", "inout"]
ScalarType = Literal["i32", "i64", "f32", "u8"]


# --- expressions over vars -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CeilDiv:
    """`ceil(value / by)`."""

    value: "Expr"
    by: int


@dataclass(frozen=True, slots=True)
class Mul:
    """`value * by`."""

    value: "Expr"
    by: int


@dataclass(frozen=True, slots=True)
class Add:
    """`left + right`."""

    left: "Expr"
    right: "Expr"


@dataclass(frozen=True, slots=True)
class Clamp:
    """`min(max(value - start, 0), length)`."""

    value: "Expr"
    start: int
    length: int


Expr = int | str | CeilDiv | Mul | Add | Clamp
"""A constant, a var's name, or an operator; evaluated in checked u64."""

Dim = int | str
"""A constant extent or a var's name."""

Bound = int | float | str | CeilDiv | Mul | Add | Clamp
"""A domain bound: an integer (i64), a double, or an expression."""


# --- vars, topology, states ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """A number the caller gives with each run, from 1 to `max`."""

    max: int
    axis: Axis | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """Rank groups by name, each with its number of members."""

    groups: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Cut:
    """Which stage of a pipeline this manifest is."""

    id: str
    stage: int
    stages: int


@dataclass(frozen=True, slots=True)
class Chat:
    """How the model's chat output is read; inert to the runtime."""

    tool_parser: str | None = None


@dataclass(frozen=True, slots=True)
class HostTensor:
    """A state supplied by an outer engine: dtype, extents and element strides."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PositionShard:
    """Positions of a paged state dealt over the members of `group`."""

    group: str


@dataclass(frozen=True, slots=True)
class HeadsShard:
    """A per-sequence state split by heads: `segments` of (rows, bytes a row) over `group`."""

    group: str
    segments: tuple[tuple[int, int], ...]


Shard = PositionShard | HeadsShard


@dataclass(frozen=True, slots=True)
class State:
    """Memory that outlives a call; exactly one of the three sizes (bytes) or `host` is set."""

    bytes_per_token: int = 0
    bytes: int = 0
    bytes_per_seq: int = 0
    host: HostTensor | None = None
    shard: Shard | None = None


# --- buffers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RankedTensors:
    """A tensor name for each member of `group`."""

    group: str
    tensors: tuple[str, ...]


TensorSource = str | RankedTensors


@dataclass(frozen=True, slots=True)
class RankedRanges:
    """A half-open range for each member of `group`."""

    group: str
    ranges: tuple[tuple[int, int], ...]


Ranges = tuple[int, int] | RankedRanges


@dataclass(frozen=True, slots=True)
class Interleave:
    """Blocks of `rows` rows taken in turn from the segment's tensor and from `with_`."""

    with_: TensorSource
    rows: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One checkpoint tensor (or a window of it) laid into a buffer."""

    tensor: TensorSource
    rows: Ranges | None = None
    cols: Ranges | None = None
    interleave: Interleave | None = None


@dataclass(frozen=True, slots=True)
class Domain:
    """What values a buffer's elements may take."""

    min: Bound | None = None
    max: Bound | None = None
    index_into: str | None = None
    stride: int = 1
    monotone: bool = False


@dataclass(frozen=True, slots=True)
class Buffer:
    """A typed tensor, who provides it and how long it lives."""

    dtype: DType
    shape: tuple[Dim, ...]
    kind: BufferKind
    placement: Placement = "device"
    fill: Fill | None = None
    domain: Domain | None = None
    export: bool = False
    of: str | None = None
    group: str | None = None
    bind: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A file of kernels; its identity is the sha256 of its bytes (hex)."""

    source: str
    sha256: str


# --- parameter types -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A number passed by value."""

    type: ScalarType

    def __str__(self) -> str:
        return self.type


@dataclass(frozen=True, slots=True)
class BytesParam:
    """A struct of `size` bytes passed by value."""

    size: int

    def __str__(self) -> str:
        return f"bytes<{self.size}>"


@dataclass(frozen=True, slots=True)
class BufferParam:
    """A pointer to a buffer's elements."""

    direction: Direction
    dtype: DType

    def __str__(self) -> str:
        return f"{self.direction} buffer<{self.dtype}>"


@dataclass(frozen=True, slots=True)
class StateParam:
    """A pointer to a state's bytes."""

    direction: Direction

    def __str__(self) -> str:
        return f"{self.direction} state"


ParamType = ScalarParam | BytesParam | BufferParam | StateParam


# --- arguments -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class I32:
    """A literal."""

    value: int


@dataclass(frozen=True, slots=True)
class I64:
    """A literal."""

    value: int


@dataclass(frozen=True, slots=True)
class F32:
    """A literal, already rounded to float32."""

    value: float


@dataclass(frozen=True, slots=True)
class U8:
    """A literal."""

    value: int


@dataclass(frozen=True, slots=True)
class Rank:
    """This rank's index in `group`."""

    group: str


@dataclass(frozen=True, slots=True)
class BufArg:
    """A buffer of the manifest, `offset` bytes in."""

    buf: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class StateArg:
    """A state of the manifest, `offset` bytes in."""

    state: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class VarArg:
    """A var's value."""

    var: str


@dataclass(frozen=True, slots=True)
class ExprArg:
    """An expression's value."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class ParamArg:
    """The op's interface parameter of that index."""

    param: int


@dataclass(frozen=True, slots=True)
class ScratchArg:
    """One of the op's own scratch buffers."""

    scratch: str


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A TMA descriptor over interface parameter `param`; dims innermost first, strides in bytes."""

    param: int
    dtype: TmaDType
    dims: tuple[int, ...]
    box: tuple[int, ...]
    strides: tuple[int, ...] = ()
    swizzle: int = 0
    l2_promotion: int = 0
    oob_nan: bool = False
    wrap: bool = False


FieldSource = ParamArg | ScratchArg | I32 | I64 | F32 | U8 | VarArg | ExprArg | Rank | TensorMap


@dataclass(frozen=True, slots=True)
class PackField:
    """One field of a pack, `at` bytes in; `width` in bytes, None for the source's own."""

    at: int
    source: FieldSource
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Pack:
    """A struct of `size` bytes passed by value, zero where no field lies."""

    size: int
    fields: tuple[PackField, ...]


LaunchArg = ParamArg | ScratchArg | I32 | I64 | F32 | U8 | Rank | Pack
Arg = BufArg | StateArg | VarArg | ExprArg | I32 | I64 | F32 | U8 | Rank


# --- ops and programs ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class When:
    """Launch only while `var` lies in [min, max] (inclusive; None is open)."""

    var: str
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class GemmAlgo:
    """A pinned cuBLASLt algorithm, attribute by attribute."""

    id: int
    tile: int
    stages: int
    split_k: int
    reduction: int
    swizzle: int
    custom: int
    inner_shape: int
    cluster_shape: int


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One kernel of a module with its geometry. `params`/`args` None: the interface's own."""

    module: str
    entry: str
    block: tuple[int, int, int]
    grid: tuple[Expr, Expr, Expr]
    params: tuple[ParamType, ...] | None = None
    shared_mem: Expr | None = None
    cluster: tuple[int, int, int] | None = None
    pdl: bool = False
    when: When | None = None
    args: tuple[LaunchArg, ...] | None = None


@dataclass(frozen=True, slots=True)
class ExternLaunch:
    """One runtime built-in (`extern:<name>`). `params`/`args` None: the interface's own."""

    entry: str
    params: tuple[ParamType, ...] | None = None
    when: When | None = None
    algo: GemmAlgo | None = None
    args: tuple[LaunchArg, ...] | None = None


Launch = KernelLaunch | ExternLaunch


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory private to an op's call."""

    dtype: DType
    shape: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Impl:
    """How an op is carried out: its launches in order."""

    launches: tuple[Launch, ...]
    scratch: Mapping[str, Scratch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Op:
    """An interface and its implementation."""

    params: tuple[ParamType, ...]
    impl: Impl


@dataclass(frozen=True, slots=True)
class Call:
    """An op bound to one argument per interface parameter."""

    op: str
    args: tuple[Arg, ...]
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The shape of one call: up to `groups` sequences of `rows` rows each."""

    groups: int
    rows: Dim
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A straight list of calls and how it may be driven."""

    calls: tuple[Call, ...]
    batch: Batch | None = None
    once: bool = False
    derive: bool = False
    graph: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """A model as a program: every mapping keeps its keys in byte order once serialized."""

    model: str
    buffers: Mapping[str, Buffer]
    modules: Mapping[str, Module]
    ops: Mapping[str, Op]
    programs: Mapping[str, Program]
    vars: Mapping[str, Var] = field(default_factory=dict)
    states: Mapping[str, State] = field(default_factory=dict)
    topology: Topology | None = None
    cut: Cut | None = None
    chat: Chat | None = None
    schema_version: int = SCHEMA_VERSION
