"""The v7 manifest as frozen types: what a model's program is, word for word as the schema names it.

Levels, outermost first: a *Program* is a list of *Calls*; a Call binds an *Op* to buffers, states
and scalars; an Op is an interface and the *Launches* that implement it; a Launch is one entry of a
*Module* with a grid. A *Buffer* is a typed tensor, a *State* memory that outlives a call, a *Var*
a number the caller gives with each run. Nothing here checks a rule: `bedstone.spec.codec` reads and
writes the types, `bedstone.verify` judges them.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from bedstone.spec.dtype import DType
from bedstone.spec.frozen import Frozen

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


class CeilDiv(Frozen):
    """`ceil(value / by)`."""

    value: "Expr"
    by: int


class Mul(Frozen):
    """`value * by`."""

    value: "Expr"
    by: int


class Add(Frozen):
    """`left + right`."""

    left: "Expr"
    right: "Expr"


class Clamp(Frozen):
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


class Var(Frozen):
    """A number the caller gives with each run, from 1 to `max`."""

    max: int
    axis: Axis | None = None


class Topology(Frozen):
    """Rank groups by name, each with its number of members."""

    groups: Mapping[str, int]


class Cut(Frozen):
    """Which stage of a pipeline this manifest is."""

    id: str
    stage: int
    stages: int


class Chat(Frozen):
    """How the model's chat output is read; inert to the runtime."""

    tool_parser: str | None = None


class HostTensor(Frozen):
    """A state supplied by an outer engine: dtype, extents and element strides."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class PositionShard(Frozen):
    """Positions of a paged state dealt over the members of `group`."""

    group: str


class HeadsShard(Frozen):
    """A per-sequence state split by heads: `segments` of (rows, bytes a row) over `group`."""

    group: str
    segments: tuple[tuple[int, int], ...]


Shard = PositionShard | HeadsShard


class State(Frozen):
    """Memory that outlives a call; exactly one of the three sizes (bytes) or `host` is set."""

    bytes_per_token: int = 0
    bytes: int = 0
    bytes_per_seq: int = 0
    host: HostTensor | None = None
    shard: Shard | None = None


# --- buffers ---------------------------------------------------------------------------------


class RankedTensors(Frozen):
    """A tensor name for each member of `group`."""

    group: str
    tensors: tuple[str, ...]


TensorSource = str | RankedTensors


class RankedRanges(Frozen):
    """A half-open range for each member of `group`."""

    group: str
    ranges: tuple[tuple[int, int], ...]


Ranges = tuple[int, int] | RankedRanges


class Interleave(Frozen):
    """Blocks of `rows` rows taken in turn from the segment's tensor and from `with_`."""

    with_: TensorSource
    rows: int


class Segment(Frozen):
    """One checkpoint tensor (or a window of it) laid into a buffer."""

    tensor: TensorSource
    rows: Ranges | None = None
    cols: Ranges | None = None
    interleave: Interleave | None = None


class Domain(Frozen):
    """What values a buffer's elements may take."""

    min: Bound | None = None
    max: Bound | None = None
    index_into: str | None = None
    stride: int = 1
    monotone: bool = False


class Buffer(Frozen):
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


class Module(Frozen):
    """A file of kernels; its identity is the sha256 of its bytes (hex)."""

    source: str
    sha256: str


# --- parameter types -------------------------------------------------------------------------


class ScalarParam(Frozen):
    """A number passed by value."""

    type: ScalarType

    def __str__(self) -> str:
        return self.type


class BytesParam(Frozen):
    """A struct of `size` bytes passed by value."""

    size: int

    def __str__(self) -> str:
        return f"bytes<{self.size}>"


class BufferParam(Frozen):
    """A pointer to a buffer's elements."""

    direction: Direction
    dtype: DType

    def __str__(self) -> str:
        return f"{self.direction} buffer<{self.dtype}>"


class StateParam(Frozen):
    """A pointer to a state's bytes."""

    direction: Direction

    def __str__(self) -> str:
        return f"{self.direction} state"


ParamType = ScalarParam | BytesParam | BufferParam | StateParam


# --- arguments -------------------------------------------------------------------------------


class I32(Frozen):
    """A literal."""

    value: int


class I64(Frozen):
    """A literal."""

    value: int


class F32(Frozen):
    """A literal, already rounded to float32."""

    value: float


class U8(Frozen):
    """A literal."""

    value: int


class Rank(Frozen):
    """This rank's index in `group`."""

    group: str


class BufArg(Frozen):
    """A buffer of the manifest, `offset` bytes in."""

    buf: str
    offset: int = 0


class StateArg(Frozen):
    """A state of the manifest, `offset` bytes in."""

    state: str
    offset: int = 0


class VarArg(Frozen):
    """A var's value."""

    var: str


class ExprArg(Frozen):
    """An expression's value."""

    expr: Expr


class ParamArg(Frozen):
    """The op's interface parameter of that index."""

    param: int


class ScratchArg(Frozen):
    """One of the op's own scratch buffers."""

    scratch: str


class TensorMap(Frozen):
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


class PackField(Frozen):
    """One field of a pack, `at` bytes in; `width` in bytes, None for the source's own."""

    at: int
    source: FieldSource
    width: int | None = None


class Pack(Frozen):
    """A struct of `size` bytes passed by value, zero where no field lies."""

    size: int
    fields: tuple[PackField, ...]


LaunchArg = ParamArg | ScratchArg | I32 | I64 | F32 | U8 | Rank | Pack
Arg = BufArg | StateArg | VarArg | ExprArg | I32 | I64 | F32 | U8 | Rank


# --- ops and programs ------------------------------------------------------------------------


class When(Frozen):
    """Launch only while `var` lies in [min, max] (inclusive; None is open)."""

    var: str
    min: int | None = None
    max: int | None = None


class GemmAlgo(Frozen):
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


class KernelLaunch(Frozen):
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


class ExternLaunch(Frozen):
    """One runtime built-in (`extern:<name>`). `params`/`args` None: the interface's own."""

    entry: str
    params: tuple[ParamType, ...] | None = None
    when: When | None = None
    algo: GemmAlgo | None = None
    args: tuple[LaunchArg, ...] | None = None


Launch = KernelLaunch | ExternLaunch


class Scratch(Frozen):
    """Memory private to an op's call."""

    dtype: DType
    shape: tuple[Dim, ...]


class Impl(Frozen):
    """How an op is carried out: its launches in order."""

    launches: tuple[Launch, ...]
    scratch: Mapping[str, Scratch] = field(default_factory=dict)


class Op(Frozen):
    """An interface and its implementation."""

    params: tuple[ParamType, ...]
    impl: Impl


class Call(Frozen):
    """An op bound to one argument per interface parameter."""

    op: str
    args: tuple[Arg, ...]
    label: str | None = None


class Batch(Frozen):
    """The shape of one call: up to `groups` sequences of `rows` rows each."""

    groups: int
    rows: Dim
    context: str | None = None


class Program(Frozen):
    """A straight list of calls and how it may be driven."""

    calls: tuple[Call, ...]
    batch: Batch | None = None
    once: bool = False
    derive: bool = False
    graph: bool = False


class Manifest(Frozen):
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
