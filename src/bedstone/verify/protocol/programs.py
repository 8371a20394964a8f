"""The calls a loop may make: programs of one shape a call, and programs that feed themselves."""

from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Fill, Program
from bedstone.verify.protocol.axes import AxisVar
from bedstone.verify.protocol.reading import (
    Driven,
    Reading,
    Traffic,
    each_driven,
)
from bedstone.verify.protocol.roles import Role, role_of
from bedstone.verify.protocol.tables import table_states


class Shape(Frozen):
    """One callable shape: up to `groups` sequences of exactly `rows` rows (None: set per call).

    `emits` is the `tokens` output it writes (None: the call only advances state), `count` the
    output that says how many of a sequence's tokens to take (None: one), `error` the output that
    is nonzero after a failed call, `inputs` every input it reads, by name. `graph` says that the
    program is captured and replayed.
    """

    program: str
    groups: int
    rows: int | None
    emits: Role | None
    count: str | None
    error: str | None
    context: AxisVar | None
    inputs: tuple[str, ...]
    graph: bool

    @property
    def is_step(self) -> bool:
        """Whether it takes a row of each sequence and hands a token of each back."""
        return self.rows == 1 and self.emits is not None

    @property
    def is_round(self) -> bool:
        """Whether it is a speculative round: several rows a sequence, of which some are taken."""
        return self.rows != 1 and self.count is not None


class Chain(Frozen):
    """A program that runs again and again with nothing from the host in between.

    It reads no input but tables, and writes the tokens output `emits`. `advances` are the carries
    it reads and writes, which take the place of the inputs; `seeds` the driven programs that write
    every one of them, after which the chain may go on. `error` as for a shape; `tables` are the
    inputs it reads; `kept` the inout buffers it writes, read back when the run is over. The vars of
    a run are those of the call it goes on from. Where no var tells how many sequences it steps,
    that is `groups`: as many as the driven program that calls the same ops. `count` as for a shape.
    """

    program: str
    emits: Role
    error: str | None
    tables: tuple[str, ...]
    advances: tuple[str, ...]
    kept: tuple[str, ...]
    seeds: tuple[str, ...]
    groups: int = 1
    count: str | None = None

    @property
    def rows(self) -> int:
        """How many tokens of each sequence a run hands back, all or some of them to be taken."""
        return 1 if self.count is None else self.emits.width


def shapes_of(reading: Reading) -> tuple[Shape, ...]:
    """The callable shapes of a manifest that keeps the program rules, by program name."""
    return tuple(_shape(driven) for driven in each_driven(reading))


def _shape(driven: Driven) -> Shape:
    batch, manifest = driven.batch, driven.reading.manifest
    context = batch.context
    buffers = manifest.buffers
    return Shape(
        program=driven.name,
        groups=batch.groups,
        rows=batch.rows if isinstance(batch.rows, int) else None,
        emits=_emits(driven.reading, driven.traffic),
        count=_written(driven.reading, driven.traffic, "count"),
        error=_written(driven.reading, driven.traffic, "error"),
        context=AxisVar(context, manifest.vars[context].max) if context else None,
        inputs=tuple(name for name in driven.traffic.reads if buffers[name].kind == "input"),
        graph=driven.program.graph,
    )


def chains_of(reading: Reading) -> tuple[Chain, ...]:
    """The programs that feed themselves, by name."""
    found = []
    for name, program in sorted(reading.manifest.programs.items()):
        if program.batch is None and not program.once and not program.derive:
            flow = reading.traffic[name]
            emits = _emits(reading, flow)
            if emits is not None and _needs_no_host(reading, flow):
                found.append(_chain(reading, name, flow, emits))
    return tuple(found)


def _needs_no_host(reading: Reading, flow: Traffic) -> bool:
    """Whether every buffer read holds its value without the host's doing.

    An inout buffer keeps what the program itself left there, but an exported one is where another
    stage or rank puts a value for each call.
    """
    tables = table_states(reading.manifest)
    buffers = ((name, reading.manifest.buffers[name]) for name in flow.reads)
    return all(
        name in tables if b.kind == "input" else not (b.kind == "inout" and b.export)
        for name, b in buffers
    )


def _chain(reading: Reading, name: str, flow: Traffic, emits: Role) -> Chain:
    buffers, program = reading.manifest.buffers, reading.manifest.programs[name]
    advances = {n for n in flow.reads if buffers[n].kind == "carry" and n in flow.writes}
    return Chain(
        program=name,
        emits=emits,
        error=_written(reading, flow, "error"),
        tables=tuple(n for n in flow.reads if buffers[n].kind == "input"),
        advances=tuple(sorted(advances)),
        kept=tuple(n for n in flow.writes if buffers[n].kind == "inout"),
        seeds=tuple(d.name for d in each_driven(reading) if advances <= set(d.traffic.writes)),
        groups=next((d.batch.groups for d in each_driven(reading) if _alike(d, program)), 1),
        count=_written(reading, flow, "count"),
    )


def _alike(driven: Driven, program: Program) -> bool:
    """Whether two programs call the same ops in the same order."""
    return [call.op for call in driven.program.calls] == [call.op for call in program.calls]


def _written(reading: Reading, flow: Traffic, fill: Fill) -> str | None:
    return next((n for n in flow.writes if reading.manifest.buffers[n].fill == fill), None)


def _emits(reading: Reading, flow: Traffic) -> Role | None:
    name = _written(reading, flow, "tokens")
    buffer = reading.manifest.buffers[name] if name else None
    return role_of(name, buffer, "tokens", reading.axes) if name and buffer else None
