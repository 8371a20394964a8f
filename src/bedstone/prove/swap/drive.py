"""A session driven through a workload: inputs written, unused memory poisoned, logits kept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.prove.swap.measure import Logits, as_logits, outside
from bedstone.prove.swap.workload import Limits, Turn
from bedstone.runtime.arrays import numpy_dtype
from bedstone.runtime.domain import highest, limits_of, longest
from bedstone.runtime.inputs import call_inputs, input_roles, table_inputs
from bedstone.runtime.lower import Region
from bedstone.runtime.memory import Capacity, extents, upper_bounds
from bedstone.runtime.sampler import Drawing, knob_inputs
from bedstone.runtime.session import Session
from bedstone.runtime.stepper import Stepper
from bedstone.spec.dtype import DType
from bedstone.spec.manifest import BufArg, BufferKind, Domain, Manifest, VarArg
from bedstone.verify.binding import call_bindings, writes
from bedstone.verify.protocol import Protocol, protocol

NAN, LARGE = 0xFF, 0x5A
"""Bytes of poison: NaN in every float type, and a number that no kernel computes."""

_CHECKED: tuple[BufferKind, ...] = ("output", "inout", "carry")
_MEANINGLESS: tuple[BufferKind, ...] = ("workspace", "output")
Bytes = NDArray[np.uint8]


Carries = Mapping[int, Mapping[Region, Bytes]]
"""What the chain of each turn goes on from."""


@dataclass(slots=True)
class Outcome:
    """What a run left: the logits of each turn, and the carries that each chain went on from.

    `strange` counts values of outputs that lie outside their domain.
    """

    strange: int = 0
    logits: list[Mapping[str, Logits]] = field(default_factory=list)
    carries: dict[int, Mapping[Region, Bytes]] = field(default_factory=dict)


class Side:
    """One package, loaded, and what it takes to drive it; paged states hold values of `cached`."""

    def __init__(
        self, session: Session, stepper: Stepper | None = None, cached: DType = "f32"
    ) -> None:
        self.session = session
        self.cached = cached
        self.stepper = stepper or Stepper(session)
        self.manifest = session.manifest
        self.protocol = protocol(session.verified)
        self._kept = frozenset(_before_steps(self.manifest))
        self._written = {name: _written(self.manifest, name) for name in self.manifest.programs}
        self._domains = dict(_domains(self.manifest))

    def open(self, poison: int) -> None:
        """Every sequence is forgotten: paged states hold poison, the others zeros."""
        for region in self.stepper.regions:
            if region.kind == "state":
                paged = self.manifest.states[region.name].bytes_per_token
                self._fill(region, poison if paged else 0)

    def begin(self, turn: Turn, poison: int) -> None:
        """Poison what means nothing yet, and write the turn's inputs."""
        for region in self.stepper.regions:
            if self._meaningless(region):
                self._fill(region, poison)
        for buffer, entries in table_inputs(self.protocol, *turn.leases):
            self.session.write(buffer, entries)
        shape = self.protocol.shape(turn.program)
        if shape is not None:
            knobs = self.session.knobs
            roles = input_roles(self.protocol, shape, knobs)
            plain = [Drawing(feed.sampling) for feed in turn.feeds]
            for buffer, values in (*call_inputs(roles, *turn.feeds), *knob_inputs(knobs, plain)):
                self.session.write(buffer, values)
        for slot in turn.opens:
            for name, state in self.manifest.states.items():
                if state.bytes_per_seq:
                    each = state.bytes_per_seq
                    self.session.clear(name, slot * each, each)

    def carries(self, turn: Turn) -> Mapping[Region, Bytes]:
        """What a chain goes on from."""
        names = turn.chain.advances if turn.chain else ()
        return {Region("buffer", n): self.stepper.read(Region("buffer", n)) for n in names}

    def logits(self, turn: Turn) -> Mapping[str, Logits]:
        """Rows [rows, vocab] of each logits output that the turn wrote."""
        found = {}
        for name in self._written[turn.program]:
            buffer = self.manifest.buffers[name]
            if buffer.kind == "output" and name.startswith("logits"):
                shape = extents(buffer.shape, {**upper_bounds(self.manifest), **turn.vars})
                size = int(np.prod(shape)) * numpy_dtype(buffer.dtype).itemsize
                data = self.stepper.read(Region("buffer", name))[:size]
                found[name] = as_logits(data, buffer.dtype, int(np.prod(shape[:-1])))
        return found

    def strange(self, turn: Turn) -> int:
        """Values that the turn left in its outputs and that their domains do not have."""
        capacity, env = self.session.loaded.capacity, {**upper_bounds(self.manifest), **turn.vars}
        found = 0
        for name in self._written[turn.program] & self._domains.keys():
            buffer = self.manifest.buffers[name]
            data = self.stepper.view(Region("buffer", name)).view(numpy_dtype(buffer.dtype))
            values = data[: int(np.prod(extents(buffer.shape, env)))]
            least_most = limits_of(self._domains[name], self.manifest, capacity, env)
            found += outside(values, least_most.low, least_most.high)
        return found

    def loaded(self) -> dict[Region, Bytes]:
        """What programs of loading left for good, but for weights."""
        regions = [Region("buffer", name) for name in sorted(self._kept)]
        return {
            region: self.stepper.read(region)
            for region in regions
            if region in self.stepper.regions
        }

    def calls(self, program: str) -> int:
        """How many calls a program has."""
        return len(self.manifest.programs[program].calls)

    def _fill(self, region: Region, value: int) -> None:
        nbytes = self.stepper.regions[region].nbytes
        self.stepper.write(region, np.full(nbytes, value, np.uint8))

    def _meaningless(self, region: Region) -> bool:
        """Whether a region holds nothing before a turn; a failure flag is set only on failure."""
        if region.kind == "scratch":
            return True
        buffer = self.manifest.buffers.get(region.name) if region.kind == "buffer" else None
        return (
            buffer is not None
            and buffer.kind in _MEANINGLESS
            and buffer.fill != "error"
            and region.name not in self._kept
        )


def limits(manifest: Manifest, known: Protocol) -> Limits:
    """How long a sequence may be and which token ids there are, as declared.

    Raises `CallerError`: the token input declares no domain, or nothing bounds a sequence.
    """
    unbounded = Capacity(2**31 - 1, 2**31 - 1, 1)
    token = highest("token", known, manifest, unbounded)
    if token is None:
        raise CallerError("the token input declares no `max`: no tokens can be drawn")
    many = (name for name in manifest.programs if known.groups.name in _vars(manifest, name))
    return Limits(longest(known, manifest, unbounded), token + 1, frozenset(many))


def free_run(
    side: Side,
    turns: Sequence[Turn],
    poison: int,
    carries: Carries,
) -> Outcome:
    """Drive a side from nothing to the end; each chain goes on from the `carries` of its turn."""
    outcome = Outcome()
    side.open(poison)
    for index, turn in enumerate(turns):
        side.begin(turn, poison)
        for region, data in carries.get(index, {}).items():
            side.stepper.write(region, data)
        side.stepper.run(turn.program, 0, side.calls(turn.program), turn.vars)
        outcome.logits.append(side.logits(turn))
        outcome.strange += side.strange(turn)
    return outcome


def _domains(manifest: Manifest) -> Iterator[tuple[str, Domain]]:
    """What each output may hold: as declared, and tokens what the token input may."""
    buffers = manifest.buffers
    tokens = next(
        (b.domain for b in buffers.values() if b.kind == "input" and b.fill == "token"), None
    )
    counted = any(buffer.fill == "count" for buffer in buffers.values())
    for name, buffer in buffers.items():
        emitted = tokens if buffer.fill == "tokens" and not counted else None
        domain = buffer.domain or emitted
        if domain is not None and buffer.kind in _CHECKED:
            yield name, domain


def _vars(manifest: Manifest, program: str) -> set[str]:
    """The vars that a program's calls are given."""
    calls = manifest.programs[program].calls
    return {arg.var for call in calls for arg in call.args if isinstance(arg, VarArg)}


def _written(manifest: Manifest, program: str) -> frozenset[str]:
    return frozenset(
        arg.buf
        for call in manifest.programs[program].calls
        for param, arg in call_bindings(manifest.ops[call.op], call)
        if isinstance(arg, BufArg) and writes(param)
    )


def _before_steps(manifest: Manifest) -> Iterator[str]:
    """Buffers that were written while loading, for good."""
    for name, program in manifest.programs.items():
        if program.once or program.derive:
            yield from _written(manifest, name)
