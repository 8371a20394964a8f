"""The operands and operations of each launch of a step, counted.

A launch moves each of its operands once: the rows of its matrices (a kernel walks the step's rows
against weights it holds), the cached positions it attends to, the activations it reads and writes.
What stays in a processor's cache between launches, or with one kernel that does several, is counted
all the same, so the bytes are those of a machine without one. Of a mixture's experts those are
counted that rows choose if every choice is as likely: exactly as many as are chosen for one row, on
average for several.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass

from bedstone.build.costs import LaunchCost, Moved
from bedstone.build.step import PlannedStep
from bedstone.graph.infer import declared
from bedstone.graph.refs import table_write
from bedstone.graph.step import Set, StepGraph, Value
from bedstone.lane.launch import (
    Attending,
    Attention,
    Carry,
    Delta,
    Embed,
    FlatAttention,
    Form,
    Gather,
    Launch,
    Matrix,
    OneLaunch,
    Read,
    Sequences,
    Stack,
    TakeRow,
    ToBuf,
    ToRows,
    ToScratch,
    Upto,
    Version,
)
from bedstone.lane.schedule import code_sizes
from bedstone.library.coding import Coding
from bedstone.library.kernel import CacheType
from bedstone.spec.dtype import DTYPE_BYTES, FORMATS

_F32 = 4


def named_values(graph: StepGraph) -> dict[str, Value]:
    """The shape of every name in a graph."""
    return {**declared(graph), **graph.values}


def launch_costs(planned: PlannedStep, at: int) -> tuple[LaunchCost, ...]:
    """The cost of each call of a step whose last rows stand at position `at` (1-based)."""
    lane = planned.lane
    counter = _Counter(planned.graph, at, lane.kernels.coding, lane.kernels.cache)
    costs = [counter.cost(step.launch) for step in planned.schedule.steps]
    return tuple(LaunchCost.of([costs[place] for place in call.places]) for call in planned.calls)


@dataclass(slots=True)
class _Counter:
    """Counts launches in their order; tables hold values of type `cache`.

    `values` is the shape of every tensor, `written` how many values each table version adds,
    `filled` the tensors that are made of as many rows as a cache holds, not of all it may.
    """

    graph: StepGraph
    at: int
    coding: Coding
    cache: CacheType
    values: dict[str, Value] = field(init=False)
    written: dict[str, int] = field(init=False)
    filled: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.values = named_values(self.graph)
        self.written = {
            write[1]: self._size(op.x)
            for op in self.graph.ops
            if isinstance(op, Set) and (write := table_write(op)) is not None
        }

    def cost(self, launch: Launch) -> LaunchCost:
        """The cost of one launch; an operand it names twice is moved once."""
        members = launch.members if isinstance(launch, Sequences) else (launch,)
        for member in members:
            if isinstance(getattr(member, "rows", 1), Upto):
                made = (leaf for leaf in _leaves(member) if isinstance(leaf, ToBuf))
                self.filled.update(leaf.tensor for leaf in made)
        named = {leaf: member for member in members for leaf in _leaves(member)}
        moved = tuple(part for leaf, one in named.items() for part in self._moved(leaf, one))
        return LaunchCost(moved, sum(map(self._operations, members)))

    def _moved(self, leaf: object, launch: OneLaunch) -> Iterator[Moved]:
        match leaf:
            case Matrix(const, format) | Stack(const, format):
                yield Moved(const, "weights", format, self._matrix_bytes(leaf, launch))
            case str() if leaf in self.graph.consts:
                nbytes = _F32 * math.prod(self.graph.consts[leaf].shape)
                yield Moved(leaf, "weights", "f32", nbytes)
            case Read(tensor, form):
                count = launch.width if isinstance(launch, TakeRow) else self._size(tensor)
                yield Moved(tensor, "activations", form, self._form_bytes(count, form))
            case ToBuf(tensor):
                yield from self._results(tensor, self._size(tensor), leaf)
            case ToScratch(table, version=version):
                rows = self._rows(launch) * self.values[table].width
                yield from self._results(version, self.written.get(version, rows), leaf)
            case Version() | Carry() | ToRows():
                yield from self._cached(leaf, launch)
            case _:
                return

    def _cached(self, leaf: Version | Carry | ToRows, launch: OneLaunch) -> Iterator[Moved]:
        match leaf:
            case Version(table, name):
                width = _columns(launch) or self.graph.tables[table].width
                nbytes = DTYPE_BYTES[self.cache] * width * self._attended(launch)
                yield Moved(name, "cache", self.cache, nbytes)
            case Carry(table, before, after):
                nbytes = _F32 * self._size(table)
                yield Moved(before, "cache", "f32", nbytes)
                yield Moved(after, "cache", "f32", nbytes, write=True)
            case ToRows(version=version):
                nbytes = DTYPE_BYTES[self.cache] * self.written[version]
                yield Moved(version, "cache", self.cache, nbytes, write=True)

    def _matrix_bytes(self, m: Matrix | Stack, launch: OneLaunch) -> int:
        """A matrix, a stack, the experts chosen of one, or the rows that an embedding picks."""
        row_bytes = FORMATS[m.format].row_bytes(m.k)
        if isinstance(launch, Embed):
            return launch.rows * row_bytes
        if isinstance(m, Matrix):
            return m.n * row_bytes
        return round(self._taken(m, launch) * m.n * row_bytes)

    def _taken(self, m: Stack, launch: OneLaunch) -> float:
        """The matrices of a stack that are read: all, or the distinct ones that rows choose."""
        chosen: int | None = getattr(launch, "chosen", None)
        if chosen is None:
            return m.count
        return m.count * (1 - (1 - chosen / m.count) ** self._rows(launch))

    def _attended(self, launch: OneLaunch) -> int:
        """The cached rows that some row of one sequence sees."""
        window = getattr(launch, "window", None)
        return self.at if window is None else min(self.at, window + self._own_rows(launch) - 1)

    def _operations(self, launch: OneLaunch) -> int:
        rows = self._rows(launch)
        match launch:
            case Embed():
                return 0
            case Attending():
                return 2 * self._pairs(launch) * launch.heads * (launch.dk + launch.dv)
            case Delta():
                return 2 * 3 * rows * launch.heads * launch.dk * launch.dv
            case _:
                return sum(2 * rows * _values(leaf, launch) for leaf in set(_leaves(launch)))

    def _pairs(self, launch: Attention | FlatAttention) -> int:
        """How many cached rows each row sees, summed."""
        rows, window = self._own_rows(launch), launch.window or self.at
        seen = sum(min(self.at - back, window) for back in range(rows))
        return seen * (launch.rows // rows)

    def _own_rows(self, launch: OneLaunch) -> int:
        """The rows of one sequence: a batch holds one of each."""
        return 1 if self.graph.form == "batch" else self._rows(launch)

    def _rows(self, launch: OneLaunch) -> int:
        rows: int | Upto = getattr(launch, "rows", 1)
        return min(self.at, rows.most) if isinstance(rows, Upto) else rows

    def _size(self, tensor: str) -> int:
        value = self.values[tensor]
        rows = min(self.at, value.rows) if tensor in self.filled else value.rows
        return rows * value.width

    def _results(self, name: str, count: int, to: ToBuf | ToScratch) -> Iterator[Moved]:
        forms: tuple[tuple[Form, bool], ...] = (("f32", to.f32), ("quant", to.quant))
        for form, made in forms:
            if made:
                nbytes = self._form_bytes(count, form)
                yield Moved(name, "activations", form, nbytes, write=True)

    def _form_bytes(self, count: int, form: Form) -> int:
        """The bytes of so many values; of codes, what stands beside them too."""
        return _F32 * count if form == "f32" else sum(code_sizes(count, self.coding).values())


def _columns(launch: OneLaunch) -> int | None:
    """The values that are read of a cached row, where they are not all."""
    match launch:
        case Gather(width=width):
            return width
        case FlatAttention(dk=dk, tail=tail) if tail is not None:
            return dk - tail.own
        case _:
            return None


def _values(leaf: object, launch: OneLaunch) -> int:
    """The values that a row meets of a matrix, of a stack, or of the experts it chooses."""
    match leaf:
        case Matrix(n=n, k=k):
            return n * k
        case Stack(count=count, n=n, k=k):
            met: int = getattr(launch, "chosen", count)
            return met * n * k
        case _:
            return 0


_LEAVES = (Matrix, Stack, Read, Version, Carry, ToBuf, ToRows, ToScratch, str)


def _leaves(value: object) -> Iterator[object]:
    """The operands a launch names, however deep in its fields."""
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, _LEAVES):
        yield value
    elif is_dataclass(value):
        for f in fields(value):
            yield from _leaves(getattr(value, f.name))
