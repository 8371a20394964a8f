"""From a program's calls to a flat list of launches in which no name is left to look up.

Pure: what a launch is given is a *slot*, which is a pointer into a region, a constant word, an
expression over vars, or a pack of those. Addresses come later, in `bedstone.runtime.image`.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Literal, assert_never

from bedstone.errors import ManifestError
from bedstone.spec.expr import names
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import (
    F32,
    I32,
    I64,
    U8,
    Arg,
    BufArg,
    Expr,
    ExprArg,
    FieldSource,
    GemmAlgo,
    KernelLaunch,
    Launch,
    LaunchArg,
    Manifest,
    Op,
    Pack,
    PackField,
    ParamArg,
    ParamType,
    Rank,
    ScalarParam,
    ScratchArg,
    StateArg,
    TensorMap,
    VarArg,
    When,
)
from bedstone.spec.param import param_bytes
from bedstone.verify.binding import launch_params

_SCALAR_LIMIT = {"i32": 2**31 - 1, "i64": 2**63 - 1, "f32": 0, "u8": 255}
_WORD = 2**64


class Region(Frozen):
    """A piece of memory by what the manifest calls it; `part` is a scratch of the op `name`."""

    kind: Literal["buffer", "state", "scratch"]
    name: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}{'.' * bool(self.part)}{self.part}`"


class Pointer(Frozen):
    """`offset` bytes into a region."""

    region: Region
    offset: int = 0


class Word(Frozen):
    """A constant, as the 8 byte word it is staged in."""

    value: int


class Computed(Frozen):
    """An expression over vars that may be worth `limit` at most."""

    expr: Expr
    limit: int


class MapSlot(Frozen):
    """A tensor map over the memory from a pointer on."""

    tensor: TensorMap
    over: Pointer


class PackedField(Frozen):
    """The low `width` bytes of a slot, `at` bytes into a pack."""

    at: int
    width: int
    slot: "Pointer | Word | Computed | MapSlot"


class PackSlot(Frozen):
    """A struct of `size` bytes; zero where no field lies."""

    size: int
    fields: tuple[PackedField, ...]


Slot = Pointer | Word | Computed | PackSlot


class Kernel(Frozen, cache_hash=True):
    """What a launch runs and how: an entry of a module, or a built-in when `module` is None.

    `block` and `cluster` count threads and blocks; `overlaps` lets it start before the launch
    before it has ended; `algo` pins a built-in's algorithm.
    """

    module: str | None
    entry: str
    params: tuple[ParamType, ...]
    block: tuple[int, int, int] = (1, 1, 1)
    cluster: tuple[int, int, int] | None = None
    overlaps: bool = False
    algo: GemmAlgo | None = None


class LoweredLaunch(Frozen):
    """One launch; `site` is where the manifest has it."""

    site: str
    kernel: Kernel
    slots: tuple[Slot, ...]
    grid: tuple[Expr, Expr, Expr]
    shared: Expr
    when: When | None

    @property
    def reads(self) -> frozenset[str]:
        """The vars that decide anything about this launch."""
        found = set() if self.when is None else {self.when.var}
        for expr in (*self.grid, self.shared, *_slot_exprs(self.slots)):
            if not isinstance(expr, int):
                found.update(names(expr))
        return frozenset(found)


class LoweredProgram(Frozen):
    """A program's launches in order, and the vars a caller has to give, in name order.

    `repeats` says that it is worth recording, once for each assignment of what it reads: it is run
    again and again, and there are few of these.
    """

    name: str
    launches: tuple[LoweredLaunch, ...]
    reads: tuple[str, ...]
    repeats: bool


def lower(manifest: Manifest, name: str, ranks: Mapping[str, int]) -> LoweredProgram:
    """The program `name` of a verified manifest; `ranks` is this process's place in each group."""
    program = manifest.programs[name]
    kernels = {
        op: tuple(kernel_of(manifest.ops[op], launch) for launch in manifest.ops[op].impl.launches)
        for op in {call.op for call in program.calls}
    }
    launches = tuple(
        _lower_launch(f"program `{name}` call #{index}", binding, at, kernel)
        for index, call in enumerate(program.calls)
        for binding in [_Binding(call.op, manifest.ops[call.op], call.args, ranks)]
        for at, kernel in enumerate(kernels[call.op])
    )
    read = frozenset[str]().union(*(launch.reads for launch in launches))
    # so is a step that follows one of as many sequences: it may not be declared, having no batch
    few = all(manifest.vars[var].axis == "groups" for var in read)
    repeats = program.graph or (few and not (program.once or program.derive))
    return LoweredProgram(name, launches, tuple(sorted(read)), repeats)


def _lower_launch(site: str, binding: "_Binding", at: int, runs: Kernel) -> LoweredLaunch:
    """A call's launch number `at`, which runs a kernel."""
    launch = binding.op.impl.launches[at]
    kernel = launch if isinstance(launch, KernelLaunch) else None
    return LoweredLaunch(
        site=f"{site} (op `{binding.name}` launch #{at}, `{launch.entry}`)",
        kernel=runs,
        slots=binding.slots(launch),
        grid=kernel.grid if kernel else (1, 1, 1),
        shared=0 if kernel is None or kernel.shared_mem is None else kernel.shared_mem,
        when=launch.when,
    )


class _Binding(Frozen):
    """An op with the arguments of one call."""

    name: str
    op: Op
    args: tuple[Arg, ...]
    ranks: Mapping[str, int]

    def slots(self, launch: Launch) -> tuple[Slot, ...]:
        """What the launch is given; without arguments of its own, what the call gives."""
        if launch.args is None:
            return tuple(map(self.bound, self.op.params, self.args))
        params, args = self.op.params, self.args
        return tuple(
            self.bound(params[arg.param], args[arg.param])
            if type(arg) is ParamArg
            else self.slot(arg)
            for arg in launch.args
        )

    def slot(self, arg: LaunchArg) -> Slot:
        if isinstance(arg, Pack):
            return PackSlot(arg.size, tuple(self.field(field) for field in arg.fields))
        return self.source(arg)

    def field(self, field: PackField) -> PackedField:
        if isinstance(field.source, TensorMap):
            over = self.source(ParamArg(field.source.param))
            if not isinstance(over, Pointer):
                raise ManifestError(f"op `{self.name}`: a tensor map over a parameter by value")
            return PackedField(field.at, 128, MapSlot(field.source, over))
        natural = self.width(field.source)
        width = natural if field.width is None else field.width
        slot = self.source(field.source)
        if type(slot) is Computed:
            slot = Computed(slot.expr, min(2 ** (8 * width), _WORD) - 1)
        return PackedField(field.at, width, slot)

    def width(self, source: FieldSource) -> int:
        """Bytes a pack field takes where it declares no width."""
        match source:
            case ScratchArg() | I64():
                return 8
            case U8():
                return 1
            case ParamArg(index):
                return param_bytes(self.op.params[index])
            case _:
                return 4

    def source(self, arg: LaunchArg | FieldSource) -> Pointer | Word | Computed:
        match arg:
            case ParamArg(index):
                return self.bound(self.op.params[index], self.args[index])
            case ScratchArg(scratch):
                return Pointer(Region("scratch", self.name, scratch))
            case VarArg(name):
                return Computed(name, _WORD - 1)
            case ExprArg(expr):
                return Computed(expr, _WORD - 1)
            case Pack() | TensorMap():
                raise ManifestError(f"op `{self.name}`: a pack inside a pack")
            case _:
                return self.constant(arg)

    def bound(self, param: ParamType, arg: Arg) -> Pointer | Word | Computed:
        """What one argument of the call gives an interface parameter."""
        # nearly all arguments are of two kinds, and patterns are tried one after another
        if isinstance(arg, BufArg):
            return Pointer(Region("buffer", arg.buf), arg.offset)
        if type(arg) is I32:
            return Word(arg.value % _WORD)
        match arg:
            case StateArg(name, offset):
                return Pointer(Region("state", name), offset)
            case VarArg(name):
                return Computed(name, _limit(param))
            case ExprArg(expr):
                return Computed(expr, _limit(param))
            case _:
                return self.constant(arg)

    def constant(self, arg: I32 | I64 | F32 | U8 | Rank) -> Word:
        match arg:
            case I32(value) | I64(value) | U8(value):
                return Word(value % _WORD)
            case F32(value):
                return Word(int.from_bytes(struct.pack("<f", value), "little"))
            case Rank(group):
                return Word(self.ranks[group])
            case _:
                assert_never(arg)


def kernel_of(op: Op, launch: Launch) -> Kernel:
    """What a launch of `op` runs."""
    params = launch_params(op, launch)
    if isinstance(launch, KernelLaunch):
        return Kernel(launch.module, launch.entry, params, launch.block, launch.cluster, launch.pdl)
    return Kernel(None, launch.entry, params, algo=launch.algo)


def _limit(param: ParamType) -> int:
    return _SCALAR_LIMIT[param.type] if isinstance(param, ScalarParam) else 0


def _slot_exprs(slots: tuple[Slot, ...]) -> Iterator[Expr]:
    for slot in slots:
        if type(slot) is Computed:
            yield slot.expr
        elif type(slot) is PackSlot:
            yield from (f.slot.expr for f in slot.fields if isinstance(f.slot, Computed))
