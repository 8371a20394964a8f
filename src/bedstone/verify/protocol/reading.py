"""What a manifest says to a serving loop, read without judging it."""

from collections.abc import Iterator, Mapping

from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Batch, BufArg, Buffer, Fill, Manifest, Program, StateArg
from bedstone.verify.binding import call_bindings, reads, writes
from bedstone.verify.protocol.axes import Axes
from bedstone.verify.protocol.roles import Role, role_of
from bedstone.verify.protocol.tables import table_states
from bedstone.verify.rule import Place, escape


class Traffic(Frozen):
    """The buffers a program's calls read and write, by name in byte order, and its states."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    states: tuple[str, ...]


class Reading(Frozen):
    """A verified manifest with its axes and the traffic of each of its programs.

    `sampled` says that tokens must come out of the manifest; the caller samples otherwise.
    """

    manifest: Manifest
    axes: Axes
    traffic: Mapping[str, Traffic]
    sampled: bool

    @staticmethod
    def of(manifest: Manifest, *, sampled: bool) -> "Reading":
        """The reading of a manifest that keeps every rule of `bedstone.verify.check`."""
        programs = manifest.programs.items()
        flows = {name: traffic(manifest, program) for name, program in programs}
        return Reading(manifest, Axes.of(manifest), flows, sampled)

    @property
    def later_stage(self) -> bool:
        """Whether activations, not tokens, come in: a stage after the first of a cut."""
        return self.manifest.cut is not None and self.manifest.cut.stage > 0

    @property
    def earlier_stage(self) -> bool:
        """Whether activations, not tokens, go out: a stage before the last of a cut."""
        cut = self.manifest.cut
        return cut is not None and cut.stage + 1 < cut.stages


class Filled(Frozen):
    """A buffer with a fill; `role` is None where no fill takes its shape."""

    reading: Reading
    name: str
    buffer: Buffer
    fill: Fill
    role: Role | None

    @property
    def place(self) -> Place:
        """The buffer's place."""
        return buffer_place(self.name)


class Tabled(Frozen):
    """An input without a fill whose domain indexes a state."""

    reading: Reading
    name: str
    buffer: Buffer
    state: str

    @property
    def place(self) -> Place:
        """The buffer's place."""
        return buffer_place(self.name)


class Driven(Frozen):
    """A program with a `batch`."""

    reading: Reading
    name: str
    program: Program
    batch: Batch
    traffic: Traffic

    @property
    def place(self) -> Place:
        """The program's place."""
        return Place(
            f"program `{self.name}`", f"/programs/{escape(self.name)}", (f"program {self.name}",)
        )

    def written(self, fill: Fill) -> tuple[str, ...]:
        """The buffers with `fill` that the program writes."""
        buffers = self.reading.manifest.buffers
        return tuple(name for name in self.traffic.writes if buffers[name].fill == fill)


def buffer_place(name: str) -> Place:
    """Where a buffer is declared."""
    return Place(f"buffer `{name}`", f"/buffers/{escape(name)}", (f"buffer {name}",))


def each_filled(reading: Reading) -> Iterator[Filled]:
    """Buffers with a fill, by name."""
    for name, buffer in sorted(reading.manifest.buffers.items()):
        if buffer.fill is not None:
            role = role_of(name, buffer, buffer.fill, reading.axes)
            yield Filled(reading, name, buffer, buffer.fill, role)


def each_table(reading: Reading) -> Iterator[Tabled]:
    """Tables, by name."""
    for name, state in table_states(reading.manifest).items():
        yield Tabled(reading, name, reading.manifest.buffers[name], state)


def each_driven(reading: Reading) -> Iterator[Driven]:
    """Programs with a `batch`, by name."""
    for name, program in sorted(reading.manifest.programs.items()):
        if program.batch is not None:
            yield Driven(reading, name, program, program.batch, reading.traffic[name])


def traffic(manifest: Manifest, program: Program) -> Traffic:
    """What a program's calls read and write."""
    read, written, states = set(), set(), set()
    for call in program.calls:
        for param, arg in call_bindings(manifest.ops[call.op], call):
            if isinstance(arg, StateArg):
                states.add(arg.state)
            if isinstance(arg, BufArg) and reads(param):
                read.add(arg.buf)
            if isinstance(arg, BufArg) and writes(param):
                written.add(arg.buf)
    return Traffic(tuple(sorted(read)), tuple(sorted(written)), tuple(sorted(states)))
