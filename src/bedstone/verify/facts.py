"""What the rules of every topic look up, computed once from the manifest."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import (
    Buffer,
    ExternLaunch,
    Manifest,
    Module,
    Op,
    Pack,
    PositionShard,
    Program,
    State,
    TensorMap,
    Var,
)
from bedstone.verify.binding import launch_bindings
from bedstone.verify.dataflow import OpFlow, op_flow
from bedstone.verify.rule import Place, escape
from bedstone.verify.sizes import array_bytes, footprint

ValueT = TypeVar("ValueT")


class Reach(Frozen):
    """Bytes a tensor map of an op addresses past the buffer bound to one parameter."""

    launch: int
    arg: int
    field: int
    bytes: int


class OpFacts(Frozen):
    """What a call needs to know of its op; `reaches` is by interface parameter."""

    flow: OpFlow
    has_extern: bool
    is_collective: bool
    reaches: Mapping[int, Sequence[Reach]]


class Deal(Frozen):
    """The first paged state that is dealt by position, and the group it is dealt over."""

    state: str
    group: str


class Facts(Frozen):
    """The manifest with its corners: `upper` has every var at its max, `lower` at 1.

    `groups` has the topology's member counts by name, in order; `buffer_bytes` is at the upper
    corner, None where a shape has no size.
    """

    manifest: Manifest
    upper: Mapping[str, int]
    lower: Mapping[str, int]
    groups: Mapping[str, int]
    deal: Deal | None
    buffer_bytes: Mapping[str, int | None]
    ops: Mapping[str, OpFacts]

    @staticmethod
    def of(manifest: Manifest) -> "Facts":
        """The facts of a manifest, sound or not."""
        upper = {name: var.max for name, var in manifest.vars.items()}
        return Facts(
            manifest=manifest,
            upper=upper,
            lower=dict.fromkeys(manifest.vars, 1),
            groups=dict(sorted(manifest.topology.groups.items())) if manifest.topology else {},
            deal=_deal(manifest),
            buffer_bytes={
                name: array_bytes(buffer.dtype, buffer.shape, upper)
                for name, buffer in manifest.buffers.items()
            },
            ops={name: _op_facts(op) for name, op in manifest.ops.items()},
        )


def is_paged(state: State) -> bool:
    """Whether the runtime keeps the state in pages of tokens."""
    return state.host is None and state.bytes_per_token > 0


def is_per_sequence(state: State) -> bool:
    """Whether the runtime keeps a block of the state for each sequence."""
    return state.host is None and state.bytes_per_seq > 0


def _deal(manifest: Manifest) -> Deal | None:
    for name in sorted(manifest.states):
        state = manifest.states[name]
        if is_paged(state) and isinstance(state.shard, PositionShard):
            return Deal(name, state.shard.group)
    return None


def _op_facts(op: Op) -> OpFacts:
    launches = op.impl.launches
    reaches: defaultdict[int, list[Reach]] = defaultdict(list)
    for param, reach in _reaches(op):
        reaches[param].append(reach)
    return OpFacts(
        flow=op_flow(op),
        has_extern=any(isinstance(launch, ExternLaunch) for launch in launches),
        is_collective=any(launch.entry.startswith("extern:nccl") for launch in launches),
        reaches=reaches,
    )


def _reaches(op: Op) -> Iterator[tuple[int, Reach]]:
    for i, launch in enumerate(op.impl.launches):
        for j, (_, arg) in enumerate(launch_bindings(op, launch)):
            for k, field in enumerate(arg.fields if isinstance(arg, Pack) else ()):
                tensor = field.source
                if isinstance(tensor, TensorMap) and not tensor.wrap:
                    span = footprint(tensor)
                    if span is not None:
                        yield tensor.param, Reach(i, j, k, span)


@dataclass(frozen=True, slots=True)
class Named(Generic[ValueT]):
    """A named entry of one of the manifest's sections."""

    facts: Facts
    kind: str
    section: str
    name: str
    value: ValueT

    @property
    def place(self) -> Place:
        """The entry's own place."""
        return Place(
            f"{self.kind} `{self.name}`",
            f"{self.section}/{escape(self.name)}",
            (f"{self.kind} {self.name}",),
        )


def _each(
    facts: Facts, kind: str, section: str, entries: Mapping[str, ValueT]
) -> Iterator[Named[ValueT]]:
    # Code point order is the byte order of UTF-8.
    for name in sorted(entries):
        yield Named(facts, kind, section, name, entries[name])


def each_var(facts: Facts) -> Iterator[Named[Var]]:
    """Vars by name."""
    return _each(facts, "var", "/vars", facts.manifest.vars)


def each_group(facts: Facts) -> Iterator[Named[int]]:
    """Topology groups by name, each with its member count."""
    return _each(facts, "group", "/topology/groups", facts.groups)


def each_state(facts: Facts) -> Iterator[Named[State]]:
    """States by name."""
    return _each(facts, "state", "/states", facts.manifest.states)


def each_buffer(facts: Facts) -> Iterator[Named[Buffer]]:
    """Buffers by name."""
    return _each(facts, "buffer", "/buffers", facts.manifest.buffers)


def each_module(facts: Facts) -> Iterator[Named[Module]]:
    """Modules by name."""
    return _each(facts, "module", "/modules", facts.manifest.modules)


def each_op(facts: Facts) -> Iterator[Named[Op]]:
    """Ops by name."""
    return _each(facts, "op", "/ops", facts.manifest.ops)


def each_program(facts: Facts) -> Iterator[Named[Program]]:
    """Programs by name."""
    return _each(facts, "program", "/programs", facts.manifest.programs)
