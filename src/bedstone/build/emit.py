"""Schedules to a v7 manifest: buffers, states, ops and programs of one model on one target.

Programs: `prefill` feeds any number of rows of one sequence, `decode` one row, `decode_chain` one
row whose token, position and slot the step before it left on the device. `derive` casts the vectors
a kernel reads as f32; `rotations` fills the rope tables once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from bedstone.build.operand import (
    Frequencies,
    Int,
    Operand,
    Operands,
    Real,
    Role,
    Whole,
)
from bedstone.build.operands import operands
from bedstone.build.ops import OpTable, Place, Sizes
from bedstone.build.placement import Placement, Workspace
from bedstone.errors import CallerError
from bedstone.graph.step import Const, RopeTable
from bedstone.lane.entries import entry
from bedstone.lane.schedule import Schedule
from bedstone.library.kernel import Kernel, KernelSet
from bedstone.spec.dtype import FORMATS, DType
from bedstone.spec.manifest import (
    Arg,
    Batch,
    BufArg,
    Buffer,
    Call,
    Dim,
    Domain,
    Manifest,
    Module,
    Program,
    Segment,
    State,
    Var,
)

PAGE = 32
"""Tokens of a page. The attention kernels walk positions in tiles that divide it."""

ROWS_VAR = "tokens"
GROUPS_VAR = "seqs"

T = TypeVar("T")

_HOST_ROLES: dict[Role, str] = {
    "token": "token",
    "position": "position",
    "slot": "slot",
    "pages": "pages",
    "next": "next",
    "error": "error",
    "chain.token": "chain.token",
    "chain.position": "chain.position",
    "chain.slot": "chain.slot",
    "run": "run",
}
_CHAIN_ROLES: dict[Role, str] = _HOST_ROLES | {
    "token": "chain.token",
    "position": "chain.position",
    "slot": "chain.slot",
}


@dataclass(frozen=True, slots=True)
class Emission:
    """A manifest whose modules are still labels, and a kernel of each to compile it by."""

    manifest: Manifest
    modules: Mapping[str, Kernel]


@dataclass(frozen=True, slots=True)
class Forms:
    """The schedules of one model that a manifest holds."""

    decode: Schedule
    chunk: Schedule


@dataclass(frozen=True, slots=True)
class Naming:
    """What the manifest takes from the model: its name, context and the checkpoint's own names.

    `own` maps a constant's canonical name to the checkpoint's; `vocab` bounds token ids.
    """

    model: str
    vocab: int
    context: int
    own: Mapping[str, str]


def emit(forms: Forms, naming: Naming, kernels: KernelSet) -> Emission:
    """The manifest of `forms`, with a module for each label its kernels name.

    Raises `CallerError`: a launch names a kernel that `kernels` does not hold.
    """
    emitter = _Emitter(kernels, naming)
    chunk, decode = forms.chunk, forms.decode
    programs = {
        "prefill": Program(
            emitter.calls(chunk, ROWS_VAR, _HOST_ROLES), Batch(groups=1, rows=ROWS_VAR)
        ),
        "decode": Program(
            emitter.calls(decode, None, _HOST_ROLES), Batch(groups=1, rows=1), graph=True
        ),
        "decode_chain": Program(emitter.calls(decode, None, _CHAIN_ROLES)),
    }
    for schedule in (chunk, decode):
        emitter.declare(schedule)
    if emitter.derived:
        programs["derive"] = Program(tuple(emitter.derived), derive=True)
    if emitter.rotations:
        programs["rotations"] = Program(tuple(emitter.rotations), once=True)
    return emitter.emission(programs, chunk.rows)


class _Emitter:
    """What the programs of one manifest share while it is put together."""

    def __init__(self, kernels: KernelSet, naming: Naming) -> None:
        self.kernels = kernels
        self.naming = naming
        self.table = OpTable()
        self.workspace = Workspace()
        self.buffers: dict[str, Buffer] = {}
        self.states: dict[str, State] = {}
        self.derived: list[Call] = []
        self.rotations: list[Call] = []

    @property
    def pages_width(self) -> int:
        """Pages of the longest sequence."""
        return -(-self.naming.context // PAGE)

    @property
    def positions(self) -> int:
        """Positions of as many pages: what a chain, which stops for no context, can reach."""
        return self.pages_width * PAGE

    def calls(
        self, schedule: Schedule, rows_var: str | None, roles: Mapping[Role, str]
    ) -> tuple[Call, ...]:
        """One call for each step of `schedule`."""
        sizes = Sizes(schedule.rows, rows_var, PAGE, self.pages_width)
        place = Placement(schedule, self.workspace, roles, _outputs(schedule))
        return tuple(
            self.call(entry(step.launch), operands(step.launch), sizes, place)
            for step in schedule.steps
        )

    def call(self, name: str, given: Operands, sizes: Sizes, place: Place) -> Call:
        """A call of the kernel `name`."""
        kernel = self.kernels.get(name)
        if kernel is None:
            raise CallerError(f"kernel `{name}` is not in the set `{self.kernels.name}`")
        return self.table.call(kernel, given, sizes, place)

    def declare(self, schedule: Schedule) -> None:
        """Add the buffers and states that `schedule` reads and does not compute."""
        for const in schedule.consts.values():
            self._const(const)
        for table in schedule.tables.values():
            self.states[table.name] = State(bytes_per_token=table.width * 4)
        for rope in schedule.ropes.values():
            self._rotation(rope)

    def _const(self, const: Const) -> None:
        """A matrix keeps its format; a vector is f32 to the kernels, cast once where it is not."""
        if const.name in self.buffers:
            return
        form = FORMATS[const.format]
        bind = (Segment(self.naming.own[const.name]),)
        if len(const.shape) > 1:
            rows, width = const.shape
            bytes_a_row = form.row_bytes(width) if form.quantized else width
            self.buffers[const.name] = Buffer(form.dtype, (rows, bytes_a_row), "weight", bind=bind)
        elif form.dtype == "f32":
            self.buffers[const.name] = Buffer("f32", const.shape, "weight", bind=bind)
        else:
            self._cast(const, form.dtype, bind)

    def _cast(self, const: Const, dtype: DType, bind: tuple[Segment, ...]) -> None:
        raw = f"raw.{const.name}"
        self.buffers[raw] = Buffer(dtype, const.shape, "source", bind=bind)
        self.buffers[const.name] = Buffer("f32", const.shape, "carry")
        given: Operands = {"count": Int(const.shape[0])}
        ends = {"x": raw, "y": const.name}
        self.derived.append(self._plain(f"cast_{const.format}_f32", given, ends))

    def _rotation(self, rope: RopeTable) -> None:
        cos, sin = f"{rope.name}.cos", f"{rope.name}.sin"
        if cos in self.buffers:
            return
        half = len(rope.inv_freq)
        shape = (self.positions, half)
        self.buffers |= {name: Buffer("f32", shape, "carry") for name in (cos, sin)}
        given: Operands = {
            "freqs": Frequencies(rope.inv_freq),
            "capacity": Int(self.positions),
            "half": Int(half),
            "factor": Real(rope.attention_factor),
        }
        ends = {"cos": cos, "sin": sin}
        self.rotations.append(self._plain("rope_table", given, ends))

    def _plain(self, name: str, given: Operands, ends: Mapping[str, str]) -> Call:
        """A call outside any step: its buffers are whole manifest buffers."""
        sizes = Sizes(0, None, PAGE, self.pages_width)
        named = {param: Whole(buffer) for param, buffer in ends.items()}
        return self.call(name, {**given, **named}, sizes, _place_whole)

    def emission(self, programs: dict[str, Program], rows: int) -> Emission:
        """Everything put together."""
        some_table = min(self.states)
        buffers = {
            **self.buffers,
            **self.workspace.buffers(),
            **_protocol_buffers(self.naming, self.pages_width, some_table),
            "run": Buffer("i32", (self.positions,), "output"),
        }
        labels = self.table.modules
        manifest = Manifest(
            model=self.naming.model,
            vars={ROWS_VAR: Var(rows, "rows"), GROUPS_VAR: Var(1, "groups")},
            states=_sorted(self.states),
            buffers=_sorted(buffers),
            modules={label: Module(label, "") for label in sorted(labels)},
            ops=_sorted(self.table.ops),
            programs=_sorted(programs),
        )
        return Emission(manifest, {label: labels[label] for label in sorted(labels)})


def _place_whole(operand: Operand) -> Arg:
    if isinstance(operand, Whole):
        return BufArg(operand.buffer)
    raise CallerError(f"operand `{operand}` is a number, expected memory")


def _outputs(schedule: Schedule) -> dict[str, str]:
    """The manifest's buffers for the tensors a caller reads."""
    return {name: name for name in schedule.outputs}


def _protocol_buffers(naming: Naming, pages_width: int, table: str) -> dict[str, Buffer]:
    """The buffers a serving loop fills and reads, and what chains one step to the next."""
    ids = Domain(min=0, max=naming.vocab - 1)
    reach = Domain(min=0, max=naming.context - 1)
    rows: tuple[Dim, ...] = (ROWS_VAR,)
    groups: tuple[Dim, ...] = (GROUPS_VAR,)
    slots = Domain(index_into=table)
    pages = Domain(index_into=table, stride=PAGE)
    return {
        "token": Buffer("i32", rows, "input", fill="token", domain=ids),
        "position": Buffer("i32", rows, "input", fill="position", domain=reach),
        "slot": Buffer("i32", rows, "input", fill="slot", domain=slots),
        "pages": Buffer("i32", (GROUPS_VAR, pages_width), "input", domain=pages),
        "next": Buffer("i32", groups, "output", fill="tokens"),
        "logits": Buffer("f32", (GROUPS_VAR, naming.vocab), "output"),
        "error": Buffer("i32", (1,), "output", fill="error"),
        "chain.token": Buffer("i32", (1,), "carry"),
        "chain.position": Buffer("i32", (1,), "carry"),
        "chain.slot": Buffer("i32", (1,), "carry"),
    }


def _sorted(items: Mapping[str, T]) -> dict[str, T]:
    return {name: items[name] for name in sorted(items, key=str.encode)}
