"""Schedules to a v7 manifest: buffers, states, ops and programs of one model on one target.

Programs: `prefill` feeds any number of rows of one sequence, `decode` one row, `decode_many` one
row of each of several sequences; `decode_chain` and `decode_many_chain` do so with the tokens,
positions and slots that the step before left on the device. `derive` casts the constants that
kernels read as f32, and lays matrices again as steps of several sequences read them fastest;
`rotations` fills the rope tables once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from bedstone.build.joined import joined
from bedstone.build.launches import scalars
from bedstone.build.operand import Frequencies, Int, Operand, Operands, Real, Role, Weight, Whole
from bedstone.build.operands import operands
from bedstone.build.ops import OpTable, Place, Sizes, numbers_of
from bedstone.build.picks import Picks, Verdict, taken_from
from bedstone.build.placement import Placement, Workspace, state_of
from bedstone.build.protocol import (
    CHAIN_ROLES,
    GROUPS_VAR,
    HOST_ROLES,
    LENGTH_VAR,
    PAGE,
    ROWS_VAR,
    Served,
    protocol_buffers,
)
from bedstone.build.sampler import CHAINED, KNOBS
from bedstone.build.weights import WeightTable
from bedstone.errors import CallerError
from bedstone.graph.step import FormName, RopeTable, Table
from bedstone.lane.entries import entry
from bedstone.lane.launch import Sample
from bedstone.lane.schedule import Schedule
from bedstone.library.kernel import CacheType, Kernel, KernelSet
from bedstone.library.product import suits_panels
from bedstone.spec.dtype import DTYPE_BYTES
from bedstone.spec.manifest import (
    Arg,
    Batch,
    BufArg,
    Buffer,
    Call,
    Manifest,
    Module,
    Program,
    Segment,
    State,
    Var,
)
from bedstone.spec.sampling import Knobs

T = TypeVar("T")

LAID_MOST = 1 << 30
"""Bytes of matrices that are held a second time, as steps of several sequences read them."""


@dataclass(frozen=True, slots=True)
class Emission:
    """A manifest whose modules are still labels, and a kernel of each to compile it by.

    `picked` names the hardware set of each module that is not of the target's own, `knobs` the
    buffers of a sampler.
    """

    manifest: Manifest
    modules: Mapping[str, Kernel]
    picked: Mapping[str, str] = field(default_factory=dict)
    knobs: Knobs | None = None


@dataclass(frozen=True, slots=True)
class Forms:
    """The schedules of one model that a manifest holds."""

    decode: Schedule
    chunk: Schedule
    batch: Schedule | None = None

    @property
    def sampled(self) -> bool:
        """Whether tokens are drawn as settings say."""
        return any(isinstance(step.launch, Sample) for step in self.decode.steps)

    def each(self) -> Iterator[tuple[FormName, Schedule]]:
        """The forms there are, by name."""
        yield "decode", self.decode
        yield "chunk", self.chunk
        if self.batch is not None:
            yield "batch", self.batch


@dataclass(frozen=True, slots=True)
class Naming:
    """What the manifest takes from the model: its name, context and the checkpoint's own tensors.

    `binds` maps a constant's canonical name to the rows it is made of; `vocab` bounds token ids.
    """

    model: str
    vocab: int
    context: int
    binds: Mapping[str, tuple[Segment, ...]]


def emit(forms: Forms, naming: Naming, kernels: KernelSet, picks: Picks | None = None) -> Emission:
    """The manifest of `forms`, with a module for each label its kernels name.

    Kernels come from the target's own set, or from the ones that `picks` says.

    Raises `CallerError`: a launch names a kernel that `kernels` does not hold.
    """
    emitter = _Emitter(kernels, naming, forms, picks)
    emitter.declare(forms.chunk)
    emitter.declare(forms.decode)
    programs = {
        "prefill": emitter.prefill(),
        "decode": Program(
            emitter.calls(forms.decode, HOST_ROLES), Batch(groups=1, rows=1), graph=True
        ),
        "decode_chain": emitter.chain(forms.decode),
    }
    if forms.batch is not None:
        emitter.declare(forms.batch)
        shape = Batch(groups=forms.batch.rows, rows=1)
        calls = emitter.calls(forms.batch, HOST_ROLES)
        programs["decode_many"] = Program(calls, shape, graph=True)
        programs["decode_many_chain"] = emitter.chain(forms.batch)
    return emitter.emission(programs)


class _Emitter:
    """What the programs of one manifest share while it is put together."""

    def __init__(
        self, kernels: KernelSet, naming: Naming, forms: Forms, picks: Picks | None
    ) -> None:
        self.kernels = kernels
        self.picks = picks
        self.picked: dict[str, str] = {}
        self.naming = naming
        self.forms = forms
        groups = 1 if forms.batch is None else forms.batch.rows
        self.served = Served(naming.vocab, naming.context, groups, forms.sampled)
        self.table = OpTable()
        self.workspace = Workspace()
        self.weights = WeightTable(naming.binds)
        self.buffers: dict[str, Buffer] = {}
        self.states: dict[str, State] = {}
        self.rotations: list[Call] = []

    @property
    def _measures(self) -> bool:
        """Whether a chunk's launches take as many rows as its sequence is long."""
        return any(buffer.live is not None for buffer in self.forms.chunk.buffers.values())

    def prefill(self) -> Program:
        """The program of a chunk."""
        length = LENGTH_VAR if self._measures else None
        calls = self.calls(self.forms.chunk, HOST_ROLES)
        return Program(calls, Batch(groups=1, rows=ROWS_VAR, context=length))

    def chain(self, schedule: Schedule) -> Program:
        """The program of steps that take what the one before left on the device."""
        return Program(self.calls(schedule, CHAIN_ROLES, CHAINED))

    def calls(
        self,
        schedule: Schedule,
        roles: Mapping[Role, str],
        instead: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[Call, ...]:
        """The calls of the steps of `schedule`, some of other entries `instead`.

        One for each, or for several that the set has one kernel for.
        """
        rows_var = {"chunk": ROWS_VAR, "batch": GROUPS_VAR, "decode": None}[schedule.form]
        sizes = self._sizes(schedule.rows, rows_var)
        place = Placement(schedule, self.workspace, roles, _outputs(schedule), self.weights.vectors)
        calls: list[Call] = []
        for each in joined(schedule, self.kernels, sizes):
            if each.join is not None:
                calls.append(self.table.call(each.join.kernel, each.given, sizes, place))
                continue
            launch = schedule.steps[each.places.start].launch
            name = entry(launch)
            calls.append(self.call(instead.get(name, name), operands(launch), sizes, place))
        return tuple(calls)

    def _sizes(self, rows: int, rows_var: str | None) -> Sizes:
        served = self.served
        return Sizes(rows, rows_var, PAGE, served.pages_width, LENGTH_VAR, served.edits)

    def call(self, name: str, given: Operands, sizes: Sizes, place: Place) -> Call:
        """A call of the kernel `name`."""
        kernel = self.kernels.get(name)
        if kernel is None:
            raise CallerError(f"kernel `{name}` is not in the set `{self.kernels.name}`")
        most = numbers_of(kernel, given, sizes.largest)
        known = {param: size for param, size in most.items() if isinstance(size, int)}
        kernel = self.kernels.suited(name, known) or kernel
        if sizes.rows_var == GROUPS_VAR and self._lays and suits_panels(known):
            kernel, given = self._by_panels(name, kernel, given)
        if self.picks is not None:
            kernel = self._picked(
                kernel, self.picks.pick(kernel, scalars(kernel, given, sizes.largest))
            )
        return self.table.call(kernel, given, sizes, place)

    @cached_property
    def _lays(self) -> bool:
        """Whether a step of several sequences has matrices of its own."""
        batch = self.forms.batch
        return batch is not None and self.weights.matrix_bytes(batch) <= LAID_MOST

    def _by_panels(self, name: str, kernel: Kernel, given: Operands) -> tuple[Kernel, Operands]:
        """The kernel that reads its matrices in panels, and those; as given where there is none."""
        found = self.kernels.get(self.kernels.laid.get(name, ""))
        if found is None or found.layer is None:
            return kernel, given
        laid: Operands = {
            param: Whole(self.weights.lay(operand.const, found.layer))
            for param, operand in given.items()
            if isinstance(operand, Weight)
        }
        return found, {**given, **laid}

    def _picked(self, kernel: Kernel, verdict: Verdict) -> Kernel:
        """The kernel in the module of the set that the verdict names, where it names another."""
        if verdict.hardware is None:
            return kernel
        moved = taken_from(kernel, verdict.hardware)
        self.picked[moved.module] = verdict.hardware
        return moved

    def declare(self, schedule: Schedule) -> None:
        """Add the buffers and states that `schedule` reads and does not compute."""
        self.weights.declare(schedule)
        for table in schedule.tables.values():
            if not table.scratch:
                self.states[state_of(table.name, schedule)] = _state(table, self.kernels.cache)
        for rope in schedule.ropes.values():
            self._rotation(rope)

    def _rotation(self, rope: RopeTable) -> None:
        cos, sin = f"{rope.name}.cos", f"{rope.name}.sin"
        if cos in self.buffers:
            return
        half = len(rope.inv_freq)
        shape = (self.served.positions, half)
        self.buffers |= {name: Buffer("f32", shape, "carry") for name in (cos, sin)}
        given: Operands = {
            "freqs": Frequencies(rope.inv_freq),
            "capacity": Int(self.served.positions),
            "half": Int(half),
            "factor": Real(rope.attention_factor),
        }
        ends = {"cos": cos, "sin": sin}
        self.rotations.append(self._plain("rope_table", given, ends))

    def _plain(self, name: str, given: Operands, ends: Mapping[str, str]) -> Call:
        """A call outside any step: its buffers are whole manifest buffers."""
        named = {param: Whole(buffer) for param, buffer in ends.items()}
        return self.call(name, {**given, **named}, self._sizes(0, None), _place_whole)

    def _derived(self) -> Iterator[Call]:
        for cast in self.weights.casts:
            ends = {"x": cast.source, "y": cast.target}
            yield self._plain(cast.entry, {"count": Int(cast.count)}, ends)
        for laying in self.weights.laid.values():
            ends = {"x": laying.source, "y": laying.target}
            sizes: Operands = {"rows": Int(laying.rows), "width": Int(laying.width)}
            yield self._plain(laying.entry, sizes, ends)

    def _vars(self) -> dict[str, Var]:
        rows = max(self.forms.chunk.rows, self.served.groups)
        found = {ROWS_VAR: Var(rows, "rows"), GROUPS_VAR: Var(self.served.groups, "groups")}
        if self._measures:
            found[LENGTH_VAR] = Var(self.naming.context)
        return found

    def emission(self, programs: dict[str, Program]) -> Emission:
        """Everything put together."""
        derived = tuple(self._derived())
        if derived:
            programs["derive"] = Program(derived, derive=True)
        if self.rotations:
            programs["rotations"] = Program(tuple(self.rotations), once=True)
        buffers = {
            **self.weights.buffers,
            **self.buffers,
            **self.workspace.buffers(),
            **protocol_buffers(self.served, self.states),
        }
        labels = self.table.modules
        manifest = Manifest(
            model=self.naming.model,
            vars=_sorted(self._vars()),
            states=_sorted(self.states),
            buffers=_sorted(buffers),
            modules={label: Module(label, "") for label in sorted(labels)},
            ops=_sorted(self.table.ops),
            programs=_sorted(programs),
        )
        modules = {label: labels[label] for label in sorted(labels)}
        knobs = KNOBS if self.served.sampled else None
        return Emission(manifest, modules, dict(sorted(self.picked.items())), knobs)


def _state(table: Table, cache: CacheType) -> State:
    """Cached rows are paged; what begins with zeros belongs to its sequence whole."""
    if table.zeros:
        return State(bytes_per_seq=table.capacity * table.width * 4)
    return State(bytes_per_token=table.width * DTYPE_BYTES[cache])


def _place_whole(operand: Operand) -> Arg:
    if isinstance(operand, Whole):
        return BufArg(operand.buffer)
    raise CallerError(f"operand `{operand}` is a number, expected memory")


def _outputs(schedule: Schedule) -> dict[str, str]:
    """The manifest's buffers for the tensors a caller reads."""
    return {name: name for name in schedule.outputs}


def _sorted(items: Mapping[str, T]) -> dict[str, T]:
    return {name: items[name] for name in sorted(items, key=str.encode)}


__all__ = ["PAGE", "Emission", "Forms", "Naming", "emit"]
