"""What a step costs, counted from its launches: bytes moved and operations made. No measurement.

A launch moves each of its operands once: the rows of its matrices (a kernel walks the step's rows
against weights it holds), the cached positions it attends to, the activations it reads and writes.
What stays in a processor's cache between launches is counted all the same, so the bytes are those
of a machine without one.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

from bedstone.build.step import PlannedStep
from bedstone.graph.infer import declared
from bedstone.graph.refs import table_write
from bedstone.graph.step import Set, StepGraph, Value
from bedstone.lane.launch import (
    Attention,
    Embed,
    Form,
    Launch,
    Matrix,
    Read,
    TakeRow,
    ToBuf,
    ToRows,
    ToScratch,
    Version,
)
from bedstone.lane.schedule import QBLOCK
from bedstone.spec.dtype import FORMATS

What = Literal["weights", "cache", "activations"]
"""What bytes are: `cache` is carried from step to step, such as keys, values, recurrent states."""

_F32 = 4
_QUANT_BLOCK = QBLOCK + 4 + 4
"""Bytes of a quantized block: a code a value, the block's scale and its sum."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of one operand that a launch reads or writes; `form` is how the values are held."""

    name: str
    what: What
    form: str
    nbytes: int
    write: bool = False


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """The operands of a launch, and its operations: two for each multiply-add of a product."""

    moved: tuple[Moved, ...]
    operations: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes by what they are, and operations."""

    weights: int
    cache: int
    activations: int
    operations: int

    @classmethod
    def of(cls, launches: Iterable[LaunchCost]) -> "Cost":
        """The cost of several launches together."""
        totals: dict[What, int] = {"weights": 0, "cache": 0, "activations": 0}
        operations = 0
        for launch in launches:
            operations += launch.operations
            for moved in launch.moved:
                totals[moved.what] += moved.nbytes
        return cls(**totals, operations=operations)

    @property
    def nbytes(self) -> int:
        """All bytes moved."""
        return self.weights + self.cache + self.activations

    def seconds(self, bandwidth: float, compute: float | None = None) -> float:
        """The time that moving all bytes takes at `bandwidth` bytes a second.

        With `compute` operations a second made meanwhile, the longer of the two times.
        """
        moved = self.nbytes / bandwidth
        return moved if compute is None else max(moved, self.operations / compute)


def named_values(graph: StepGraph) -> dict[str, Value]:
    """The shape of every tensor a graph names, constants of more than two axes aside."""
    return {**declared(graph), **graph.values}


def launch_costs(planned: PlannedStep, at: int) -> tuple[LaunchCost, ...]:
    """The cost of each launch of a step whose last rows stand at position `at` (1-based)."""
    counter = _Counter(planned.graph, at)
    return tuple(counter.cost(step.launch) for step in planned.schedule.steps)


@dataclass(slots=True)
class _Counter:
    """`values` is the shape of every tensor, `written` what each table version adds, in values."""

    graph: StepGraph
    at: int
    values: dict[str, Value] = field(init=False)
    written: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.values = named_values(self.graph)
        self.written = {}
        for op in self.graph.ops:
            write = table_write(op)
            if write is not None:
                table, version = write
                self.written[version] = self._size(op.x if isinstance(op, Set) else table)

    def cost(self, launch: Launch) -> LaunchCost:
        """The cost of one launch; an operand it names twice is moved once."""
        leaves = dict.fromkeys(_leaves(launch))
        moved = tuple(part for leaf in leaves for part in self._moved(leaf, launch))
        return LaunchCost(moved, self._operations(launch, leaves))

    def _moved(self, leaf: object, launch: Launch) -> Iterator[Moved]:
        match leaf:
            case Matrix(const, format):
                yield Moved(const, "weights", format, _matrix_bytes(leaf, launch))
            case str() if leaf in self.graph.consts:
                nbytes = _F32 * math.prod(self.graph.consts[leaf].shape)
                yield Moved(leaf, "weights", "f32", nbytes)
            case Read(tensor, form):
                count = launch.width if isinstance(launch, TakeRow) else self._size(tensor)
                yield Moved(tensor, "activations", form, _form_bytes(count, form))
            case Version(table, name):
                yield Moved(name, "cache", "f32", _F32 * self._cached(table, launch))
            case ToRows(version=version):
                nbytes = _F32 * self.written[version]
                yield Moved(version, "cache", "f32", nbytes, write=True)
            case ToBuf(tensor):
                yield from _results(tensor, self._size(tensor), leaf)
            case ToScratch(version=version):
                yield from _results(version, self.written[version], leaf)
            case _:
                return

    def _cached(self, table: str, launch: Launch) -> int:
        """The values read of a table: of the positions attended to, or a whole state."""
        of = self.graph.tables[table]
        return of.width * (of.capacity if of.zeros else self._attended(launch))

    def _attended(self, launch: Launch) -> int:
        """The cached rows that some row of one sequence sees."""
        window = getattr(launch, "window", None)
        return self.at if window is None else min(self.at, window + self._own_rows(launch) - 1)

    def _operations(self, launch: Launch, leaves: Iterable[object]) -> int:
        if isinstance(launch, Embed):
            return 0
        rows: int = getattr(launch, "rows", 1)
        made = sum(2 * rows * leaf.n * leaf.k for leaf in leaves if isinstance(leaf, Matrix))
        if isinstance(launch, Attention):
            made += 2 * self._pairs(launch) * launch.heads * (launch.dk + launch.dv)
        return made

    def _pairs(self, launch: Attention) -> int:
        """How many cached rows each row sees, summed."""
        rows, window = self._own_rows(launch), launch.window or self.at
        seen = sum(min(self.at - back, window) for back in range(rows))
        return seen * (launch.rows // rows)

    def _own_rows(self, launch: Launch) -> int:
        """The rows of one sequence: a batch holds one of each."""
        rows: int = getattr(launch, "rows", 1)
        return 1 if self.graph.form == "batch" else rows

    def _size(self, tensor: str) -> int:
        value = self.values[tensor]
        return value.rows * value.width


def _matrix_bytes(m: Matrix, launch: Launch) -> int:
    """A whole matrix, or the rows that an embedding picks of it."""
    rows = launch.rows if isinstance(launch, Embed) else m.n
    return rows * FORMATS[m.format].row_bytes(m.k)


def _results(name: str, count: int, to: ToBuf | ToScratch) -> Iterator[Moved]:
    forms: tuple[tuple[Form, bool], ...] = (("f32", to.f32), ("quant", to.quant))
    for form, made in forms:
        if made:
            yield Moved(name, "activations", form, _form_bytes(count, form), write=True)


def _form_bytes(count: int, form: Form) -> int:
    return count * _QUANT_BLOCK // QBLOCK if form == "quant" else _F32 * count


def _leaves(value: object) -> Iterator[object]:
    """The operands a launch names, however deep in its fields."""
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, (Matrix, Read, Version, ToBuf, ToRows, ToScratch, str)):
        yield value
    elif is_dataclass(value):
        for f in fields(value):
            yield from _leaves(getattr(value, f.name))
