"""The verifier of schedules: a proof, launch by launch, that a schedule computes its graph.

The schedule is run on symbols (`lane.machine`): every read must find the value the graph names in
the bytes the buffers name, every write must be the value of its tensor. That covers order, table
versions, views, quantized forms, sizes, destinations and shared memory at once, whatever pass went
wrong. What symbols cannot show is checked apart: which ops are accounted for, and by which rule.
"""

from collections import Counter
from collections.abc import Iterator

from bedstone.graph.step import Fixed, Row
from bedstone.lane.arena import ALIGN
from bedstone.lane.census import kind
from bedstone.lane.facts import Facts
from bedstone.lane.launch import ArgMax, Read, Version
from bedstone.lane.machine import BrokenStepError, Machine
from bedstone.lane.schedule import QBLOCK, Buffer, Schedule, Slot, Step
from bedstone.lane.semantics import run_launch
from bedstone.lane.shim import Shim
from bedstone.lane.touch import reads_of


def verify(schedule: Schedule, facts: Facts, shim: Shim) -> list[str]:
    """Every fault found: none means the schedule computes the graph of `facts`, on this lane."""
    return [
        *_declared(schedule, facts),
        *_buffers(schedule, facts),
        *_coverage(schedule, facts),
        *_explained(schedule),
        *_launches(schedule, shim),
        *_wasted(schedule),
        *_values(schedule, facts),
    ]


def _declared(schedule: Schedule, facts: Facts) -> Iterator[str]:
    """The schedule declares what the graph does."""
    graph = facts.graph
    for name in ("consts", "tables", "carried", "ropes", "params", "outputs", "rows", "row_param"):
        if getattr(schedule, name) != getattr(graph, name):
            yield f"`{name}` is not the graph's"


def _buffers(schedule: Schedule, facts: Facts) -> Iterator[str]:
    for name, buffer in schedule.buffers.items():
        value = facts.values.get(name)
        if value is None or (value.rows, value.width, value.dtype) != _shape(buffer):
            yield f"buffer `{name}` has another shape than its tensor"
        yield from _viewed(buffer, schedule)
        for slot, nbytes in _slots(buffer):
            placed = slot.offset >= 0 and slot.end <= schedule.arena_bytes
            if slot.nbytes != nbytes or slot.offset % ALIGN or not placed:
                yield f"buffer `{name}` lies at {slot.offset} in {slot.nbytes} bytes, not {nbytes}"


def _viewed(buffer: Buffer, schedule: Schedule) -> Iterator[str]:
    """A view lies within a tensor that is no view and has no values of its own."""
    if buffer.view_of is None:
        if buffer.offset:
            yield f"buffer `{buffer.tensor}` starts at {buffer.offset}, but is no view"
        return
    whole = schedule.buffers.get(buffer.view_of)
    if buffer.f32 is not None or whole is None or whole.view_of is not None:
        yield f"buffer `{buffer.tensor}` is no proper view of `{buffer.view_of}`"
    elif not 0 <= buffer.offset <= whole.rows * whole.width - buffer.rows * buffer.width:
        yield f"buffer `{buffer.tensor}` reaches out of `{buffer.view_of}`"


def _shape(buffer: Buffer) -> tuple[int, int, str]:
    return buffer.rows, buffer.width, buffer.dtype


def _slots(buffer: Buffer) -> Iterator[tuple[Slot, int]]:
    """The slots of a buffer, and the bytes that each should have."""
    count = buffer.rows * buffer.width
    if buffer.f32 is not None:
        yield buffer.f32, 4 * count
    if buffer.quant is not None:
        sizes = (count, 4 * count // QBLOCK, 4 * count // QBLOCK)
        yield from zip(
            (buffer.quant.codes, buffer.quant.scales, buffer.quant.sums), sizes, strict=True
        )


def _coverage(schedule: Schedule, facts: Facts) -> Iterator[str]:
    """Every op that is no view is computed by exactly one launch."""
    counts = Counter(op for step in schedule.steps for op in step.ops)
    for index, op in enumerate(facts.graph.ops):
        buffer = schedule.buffers.get(op.out)
        literal = isinstance(op, Row) and isinstance(op.at, Fixed)
        view = literal and buffer is not None and buffer.view_of is not None
        wanted = 0 if view else 1
        if counts[index] != wanted:
            yield f"op {index} (`{op.out}`) is computed {counts[index]} times, not {wanted}"
    for index in sorted(counts.keys() - set(range(len(facts.graph.ops)))):
        yield f"op {index} is computed, but the graph has none"
    if not (schedule.steps and isinstance(schedule.steps[-1].launch, ArgMax)):
        yield "no arg-max closes the step"


def _explained(schedule: Schedule) -> Iterator[str]:
    """A fusion's ops lie in one launch, and a launch of several ops is made of fusions."""
    launch_of = {op: at for at, step in enumerate(schedule.steps) for op in step.ops}
    joined: dict[int, set[int]] = {}
    for fusion in schedule.fusions:
        places = {launch_of.get(op) for op in fusion.ops}
        place = places.pop()
        if places or place is None:
            yield f"the ops {fusion.ops} that `{fusion.rule}` joined lie in several launches"
        else:
            joined.setdefault(place, set()).update(fusion.ops)
    for at, step in enumerate(schedule.steps):
        if len(step.ops) > 1 and joined.get(at, set()) != set(step.ops):
            yield f"{_name(at, step)} computes {step.ops}, which no fusion explains"


def _launches(schedule: Schedule, shim: Shim) -> Iterator[str]:
    for at, step in enumerate(schedule.steps):
        why = shim.lacks(step.launch)
        if why is not None:
            yield f"{_name(at, step)} cannot run: {why}"


def _wasted(schedule: Schedule) -> Iterator[str]:
    """A tensor that is read quantized only has no values in memory."""
    read = {read for step in schedule.steps for read in reads_of(step.launch)}
    read |= {Read(name) for name in schedule.outputs}
    homes = {r.tensor: schedule.buffers.get(r.tensor) for r in read if r.form == "f32"}
    valued = {b.view_of or b.tensor for b in homes.values() if b is not None}
    for name, buffer in schedule.buffers.items():
        if buffer.f32 is not None and buffer.quant is not None and name not in valued:
            yield f"buffer `{name}` holds values that nobody reads"


def _values(schedule: Schedule, facts: Facts) -> Iterator[str]:
    """The first launch that breaks, or what is not there when all have run."""
    machine = Machine(schedule, facts)
    for at, step in enumerate(schedule.steps):
        try:
            run_launch(step.launch, machine)
        except BrokenStepError as broken:
            yield f"{_name(at, step)} {broken}"
            return
        outs = [facts.graph.ops[op].out for op in step.ops if op < len(facts.graph.ops)]
        idle = [out for out in outs if machine.expected[out] not in machine.made]
        yield from (f"{_name(at, step)} does not compute `{out}`" for out in idle)
    yield from _left(machine)


def _left(machine: Machine) -> Iterator[str]:
    """What the step leaves: its outputs in memory, its carried tables at their last version."""
    facts = machine.facts
    last = {table: version for version, table in facts.storage.items()}
    reads = [Read(name) for name in facts.graph.outputs]
    for read in reads:
        try:
            machine.read(read)
        except BrokenStepError as broken:
            yield f"whoever takes the outputs {broken}"
    for table in machine.tables:
        try:
            machine.cached(Version(table, last[table]))
        except BrokenStepError as broken:
            yield f"the next step {broken}"


def _name(at: int, step: Step) -> str:
    return f"step {at} ({kind(step.launch)})"
