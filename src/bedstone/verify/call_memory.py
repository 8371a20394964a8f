"""Call arguments in memory: buffers and states that exist, in time and in range."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.dtype import DTYPE_BYTES
from bedstone.spec.manifest import BufArg, Buffer, BufferKind, BufferParam, StateArg, StateParam
from bedstone.verify.binding import reads, writes
from bedstone.verify.callsite import CallArg
from bedstone.verify.facts import Facts
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule

UNWRITTEN: frozenset[BufferKind] = frozenset({"output", "workspace"})
"""Kinds whose contents mean nothing until the program writes them."""
READ_ONLY: frozenset[BufferKind] = frozenset({"input", "weight", "source", "peer"})
PER_STEP: frozenset[BufferKind] = frozenset({"input", "output", "inout", "peer"})
"""Kinds that mean nothing while weights load."""


@dataclass(frozen=True, slots=True)
class BufferUse:
    """A buffer bound to a buffer parameter; `size` is in bytes at the upper corner."""

    arg: CallArg
    name: str
    offset: int
    buffer: Buffer
    param: BufferParam

    @property
    def facts(self) -> Facts:
        """The manifest's facts."""
        return self.arg.facts

    @property
    def place(self) -> Place:
        """The argument's place, with the buffer among its objects."""
        place = self.arg.place
        return Place(f"{place.text}, buffer `{self.name}`,", place.path, self.objects)

    @property
    def objects(self) -> tuple[str, ...]:
        """The argument's objects and the buffer."""
        return (*self.arg.place.objects, f"buffer {self.name}")

    @property
    def size(self) -> int | None:
        """Bytes of the buffer at the upper corner; None when its shape has no size."""
        return self.facts.buffer_bytes[self.name]

    @property
    def derives(self) -> bool:
        """Whether the program runs while weights load."""
        return self.arg.call.site.program.value.derive


@dataclass(frozen=True, slots=True)
class StateUse:
    """A state bound to a state parameter."""

    arg: CallArg
    name: str


def buffer_known(arg: CallArg) -> Iterator[Finding]:
    """A buffer bound to a parameter exists."""
    if isinstance(arg.arg, BufArg) and isinstance(arg.param, BufferParam):
        name = arg.arg.buf
        if name not in arg.facts.manifest.buffers:
            yield arg.place.finding(f"names unknown buffer `{name}`", f"buffer {name}", at="/buf")


def as_buffer(arg: CallArg) -> Iterator[BufferUse]:
    """The buffer bound, when it exists and the parameter is a buffer."""
    if isinstance(arg.arg, BufArg) and isinstance(arg.param, BufferParam):
        buffer = arg.facts.manifest.buffers.get(arg.arg.buf)
        if buffer is not None:
            yield BufferUse(arg, arg.arg.buf, arg.arg.offset, buffer, arg.param)


def dtype_matches(use: BufferUse) -> Iterator[Finding]:
    """A buffer has its parameter's dtype."""
    if use.buffer.dtype != use.param.dtype:
        yield use.place.finding(f"has dtype {use.buffer.dtype}, expected {use.param.dtype}")


def offset_aligned(use: BufferUse) -> Iterator[Finding]:
    """An offset is a whole number of elements."""
    width = DTYPE_BYTES[use.buffer.dtype]
    if use.offset % width:
        yield use.place.finding(
            f"is at offset {use.offset}, expected a multiple of {width} for {use.buffer.dtype}",
            at="/offset",
        )


def offset_within(use: BufferUse) -> Iterator[Finding]:
    """An offset is within the buffer with every var at its max."""
    if use.offset and use.size is not None and use.offset >= use.size:
        yield use.place.finding(
            f"is at offset {use.offset}, expected less than its {use.size} bytes", at="/offset"
        )


def written_before_read(use: BufferUse) -> Iterator[Finding]:
    """An output or workspace is read only after the same program wrote it."""
    if use.buffer.kind not in UNWRITTEN or not reads(use.param):
        return
    site = use.arg.call.site
    first = site.first_writes.get(use.name)
    if first is None or first >= (site.index, use.arg.index):
        yield use.place.finding("is read before the program writes it")


def tensormaps_reach_within(use: BufferUse) -> Iterator[Finding]:
    """What a tensor map of the op addresses is within the buffer."""
    if use.size is None:
        return
    left = max(use.size - use.offset, 0)
    for reach in use.arg.call.facts.reaches.get(use.arg.index, ()):
        if reach.bytes > left:
            op = use.arg.call.site.call.op
            yield use.place.finding(
                f"has {left} bytes past offset {use.offset}, expected the {reach.bytes} that the "
                f"tensor map of op `{op}` launch #{reach.launch} arg #{reach.arg} "
                f"field #{reach.field} addresses",
                f"op {op}",
            )


def source_only_derives(use: BufferUse) -> Iterator[Finding]:
    """A source, which is gone after load, is bound in `derive` programs only."""
    if use.buffer.kind == "source" and not use.derives:
        yield use.place.finding("is a source, which is gone once the `derive` programs have run")


def derive_before_steps(use: BufferUse) -> Iterator[Finding]:
    """A `derive` program binds nothing that means something only in a step."""
    if use.derives and use.buffer.kind in PER_STEP:
        yield use.place.finding(
            f"is of kind `{use.buffer.kind}`, which means nothing yet in a `derive` program"
        )


def peers_stay_in_kernels(use: BufferUse) -> Iterator[Finding]:
    """A peer buffer is not passed to an op with a built-in."""
    if use.buffer.kind == "peer" and use.arg.call.facts.has_extern:
        op = use.arg.call.site.call.op
        yield use.place.finding(
            f"is a peer buffer, but op `{op}` has a built-in, which takes none", f"op {op}"
        )


def read_only_not_written(use: BufferUse) -> Iterator[Finding]:
    """A call writes to no input, weight, source or peer buffer."""
    if writes(use.param) and use.buffer.kind in READ_ONLY:
        yield use.place.finding(f"is a read-only {use.buffer.kind}, expected one that is writable")


def as_state(arg: CallArg) -> Iterator[StateUse]:
    """The state bound, when the parameter is a state."""
    if isinstance(arg.arg, StateArg) and isinstance(arg.param, StateParam):
        yield StateUse(arg, arg.arg.state)


def derive_before_states(use: StateUse) -> Iterator[Finding]:
    """A `derive` program binds no state."""
    if use.arg.call.site.program.value.derive:
        yield use.arg.place.finding(
            f"is state `{use.name}`, which holds nothing yet in a `derive` program",
            f"state {use.name}",
            at="/state",
        )


def state_known(use: StateUse) -> Iterator[Finding]:
    """A state bound to a parameter exists."""
    if use.name not in use.arg.facts.manifest.states:
        yield use.arg.place.finding(
            f"names unknown state `{use.name}`", f"state {use.name}", at="/state"
        )


MEMORY_ROWS: Rows[CallArg] = (
    Rule("Z3", "calls", buffer_known),
    Each(
        as_buffer,
        (
            Rule("Z4", "calls", dtype_matches),
            Rule("Z5", "calls", offset_aligned),
            Rule("Z6", "calls", offset_within),
            Rule("Z7", "calls", written_before_read),
            Rule("R16", "calls", tensormaps_reach_within),
            Rule("Z9", "calls", source_only_derives),
            Rule("Z10", "calls", derive_before_steps),
            Rule("X17", "calls", peers_stay_in_kernels),
            Rule("Z8", "calls", read_only_not_written),
        ),
    ),
    Each(
        as_state,
        (Rule("Z11", "calls", derive_before_states), Rule("Z13", "calls", state_known)),
    ),
)
