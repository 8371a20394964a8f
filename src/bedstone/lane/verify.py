"""The verifier of schedules: a proof, launch by launch, that a schedule computes its graph.

The schedule is run on symbols (`lane.machine`): every read must find the value the graph names in
the bytes the buffers name, every write must be the value of its tensor. That covers order, table
versions, views, quantized forms, sizes, destinations and shared memory at once, whatever pass went
wrong. What symbols cannot show is checked apart: which ops are accounted for, and by which rule.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.graph.step import Fixed, Op, Set
from bedstone.lane.blocks import ALIGN
from bedstone.lane.census import kind
from bedstone.lane.facts import Facts
from bedstone.lane.launch import ArgMax, Finish, Read, Sequences, Upto, Version
from bedstone.lane.machine import BrokenStepError, Machine
from bedstone.lane.regular import irregular
from bedstone.lane.schedule import Buffer, Schedule, Slot, Step, code_sizes
from bedstone.lane.semantics import run_launch
from bedstone.lane.shim import Shim
from bedstone.lane.terms import Term
from bedstone.lane.touch import reads_of
from bedstone.lane.views import is_taken
from bedstone.library.coding import Coding


def verify(schedule: Schedule, facts: Facts, shim: Shim) -> list[str]:
    """Every fault found: none means the schedule computes the graph of `facts`, on this lane."""
    return [
        *_declared(schedule, facts),
        *_buffers(schedule, facts),
        *_coverage(schedule, facts),
        *_explained(schedule),
        *_launches(schedule, shim),
        *_sequences(schedule, facts),
        *_wasted(schedule),
        *_values(schedule, facts),
    ]


def _declared(schedule: Schedule, facts: Facts) -> Iterator[str]:
    """The schedule declares what the graph does, and codes activations as its lane does."""
    graph = facts.graph
    if schedule.coding != facts.coding:
        yield "activations are coded otherwise than the lane codes them"
    for name in ("consts", "tables", "carried", "ropes", "params", "outputs", "rows", "row_param"):
        if getattr(schedule, name) != getattr(graph, name):
            yield f"`{name}` is not the graph's"


def _buffers(schedule: Schedule, facts: Facts) -> Iterator[str]:
    for name, buffer in schedule.buffers.items():
        value = facts.values.get(name)
        if value is None or (value.rows, value.width, value.dtype) != _shape(buffer):
            yield f"buffer `{name}` has another shape than its tensor"
        elif buffer.live != _live(name, facts):
            yield f"buffer `{name}` holds something in as many rows as `{buffer.live}` says"
        yield from _viewed(buffer, schedule)
        before = _slots(schedule.buffers.get(buffer.beside or ""), facts.coding)
        for piece, (slot, nbytes) in _slots(buffer, facts.coding).items():
            placed = slot.offset >= 0 and slot.end <= schedule.arena_bytes
            lies = slot.offset % ALIGN == 0
            if buffer.beside is not None:
                lies = piece in before and slot.offset == before[piece][0].end
            if slot.nbytes != nbytes or not lies or not placed:
                yield f"buffer `{name}` lies at {slot.offset} in {slot.nbytes} bytes, not {nbytes}"


def _live(name: str, facts: Facts) -> str | None:
    """The param that counts the rows of a tensor that hold something, if not all do."""
    count = facts.count(name)
    return count.param if isinstance(count, Upto) else None


def _viewed(buffer: Buffer, schedule: Schedule) -> Iterator[str]:
    """A view lies within a tensor that is no view and has no values of its own."""
    if buffer.view_of is None:
        if buffer.offset or buffer.window is not None:
            yield f"buffer `{buffer.tensor}` starts at {buffer.offset}, but is no view"
        return
    whole = schedule.buffers.get(buffer.view_of)
    if buffer.f32 is not None or whole is None or whole.view_of is not None:
        yield f"buffer `{buffer.tensor}` is no proper view of `{buffer.view_of}`"
    elif not 0 <= buffer.offset <= whole.rows * whole.width - _extent(buffer):
        yield f"buffer `{buffer.tensor}` reaches out of `{buffer.view_of}`"


def _extent(buffer: Buffer) -> int:
    """The values from a view's first to its last."""
    window = buffer.window
    if window is None:
        return buffer.rows * buffer.width
    units = buffer.width // max(1, window.width)
    return (buffer.rows - 1) * window.row + (units - 1) * window.unit + window.width


def _shape(buffer: Buffer) -> tuple[int, int, str]:
    return buffer.rows, buffer.width, buffer.dtype


def _slots(buffer: Buffer | None, coding: Coding) -> dict[str, tuple[Slot, int]]:
    """The slots of a buffer by piece, and the bytes that each should have."""
    if buffer is None:
        return {}
    count, found = buffer.rows * buffer.width, dict[str, tuple[Slot, int]]()
    if buffer.f32 is not None:
        found["f32"] = (buffer.f32, 4 * count)
    if buffer.quant is not None:
        sizes = code_sizes(count, coding)
        # a piece that the coding has no use for should not be there: it has no right size
        found |= {piece: (slot, sizes.get(piece, -1)) for piece, slot in buffer.quant.pieces()}
    return found


def _coverage(schedule: Schedule, facts: Facts) -> Iterator[str]:
    """Every op that is no view is computed by exactly one launch."""
    counts = Counter(op for step in schedule.steps for op in step.ops)
    for index, op in enumerate(facts.graph.ops):
        buffer = schedule.buffers.get(op.out)
        view = is_taken(op) and buffer is not None and buffer.view_of is not None
        wanted = 0 if view else 1
        if counts[index] != wanted:
            yield f"op {index} (`{op.out}`) is computed {counts[index]} times, not {wanted}"
    for index in sorted(counts.keys() - set(range(len(facts.graph.ops)))):
        yield f"op {index} is computed, but the graph has none"
    if not (schedule.steps and isinstance(schedule.steps[-1].launch, ArgMax | Finish)):
        yield "nothing closes the step"


def _explained(schedule: Schedule) -> Iterator[str]:
    """A fusion's ops lie in the launches of one node; a node of several ops is made of fusions."""
    works = list(_works(schedule.steps))
    work_of = {op: at for at, work in enumerate(works) for op in work.ops}
    joins: dict[int, list[tuple[int, ...]]] = {}
    for fusion in schedule.fusions:
        places = {work_of.get(op) for op in fusion.ops}
        place = places.pop()
        if places or place is None:
            yield f"the ops {fusion.ops} that `{fusion.rule}` joined lie in several launches"
        else:
            joins.setdefault(place, []).append(fusion.ops)
    for at, work in enumerate(works):
        if _groups(work.ops, joins.get(at, [])) > max(1, len(work.nodes)):
            yield f"{work.name} computes {work.ops}, which no fusion explains"


@dataclass(slots=True)
class _Work:
    """Launches that belong together: of one node, or of nodes that share a launch."""

    name: str
    ops: tuple[int, ...]
    nodes: frozenset[int]
    steps: tuple[int, ...]

    def beside(self, other: "_Work") -> "_Work":
        """Both, named after this one."""
        nodes, steps = self.nodes | other.nodes, (*self.steps, *other.steps)
        return _Work(self.name, self.ops + other.ops, nodes, steps)


def _works(steps: tuple[Step, ...]) -> list[_Work]:
    works: dict[int, _Work] = {}
    work_of: dict[int, int] = {}
    for at, step in enumerate(steps):
        made = _Work(_name(at, step), step.ops, frozenset(step.nodes), (at,))
        for other in {work_of[node] for node in step.nodes if node in work_of}:
            made = works.pop(other).beside(made)
        works[at] = made
        work_of |= dict.fromkeys(made.nodes, at)
    return list(works.values())


def _groups(ops: tuple[int, ...], joins: list[tuple[int, ...]]) -> int:
    """Into how many groups joins bring some ops together."""
    above = {op: op for op in ops}

    def first(op: int) -> int:
        """The op that stands for a group; the way to it gets shorter each time."""
        while above[op] != op:
            above[op] = above[above[op]]
            op = above[op]
        return op

    for join in joins:
        for op in join:
            above[first(op)] = first(join[0])
    return sum(above[op] == op for op in above)


def _launches(schedule: Schedule, shim: Shim) -> Iterator[str]:
    for at, step in enumerate(schedule.steps):
        why = shim.lacks(step.launch)
        if why is not None:
            yield f"{_name(at, step)} cannot run: {why}"


def _sequences(schedule: Schedule, facts: Facts) -> Iterator[str]:
    for at, step in enumerate(schedule.steps):
        if isinstance(step.launch, Sequences):
            why = irregular(step.launch, schedule, facts)
            yield from (f"{_name(at, step)} {each}" for each in why)


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
    made: list[set[Term]] = []
    for at, step in enumerate(schedule.steps):
        try:
            run_launch(step.launch, machine)
        except BrokenStepError as broken:
            yield f"{_name(at, step)} {broken}"
            return
        made.append(machine.made)
    for work in _works(schedule.steps):
        terms = set[Term]().union(*(made[at] for at in work.steps))
        ops = [facts.graph.ops[op] for op in work.ops if op < len(facts.graph.ops)]
        idle = [op.out for op in ops if not _computed(op, terms, machine)]
        yield from (f"{work.name} does not compute `{out}`" for out in idle)
    yield from _left(machine)


def _computed(op: Op, made: set[Term], machine: Machine) -> bool:
    """Whether launches computed what an op makes, whole or row by row."""
    term, size = machine.expected[op.out], machine.size(op.out)
    if term in made:
        return True
    rows = range(size[0])
    if isinstance(op, Set):
        start = op.at.row if isinstance(op.at, Fixed) else 0
        rows = range(start, start + machine.facts.rows(op.x))
    return all(machine.terms.row(term, Fixed(row), size) in made for row in rows)


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
