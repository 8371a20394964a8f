"""Launches of a schedule that one kernel does together, where a set has such a kernel.

Which ones is a matter of the set's table (`Joining`): nothing here knows what a launch computes.
The tensors that one hands to another need not lie in memory where nobody else reads them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from bedstone.build.operand import Operand, Operands, Quant, Real, Values
from bedstone.build.operands import operands
from bedstone.build.ops import Sizes, known_numbers
from bedstone.lane.census import kind
from bedstone.lane.entries import entry
from bedstone.lane.launch import Launch, Sequences
from bedstone.lane.schedule import Schedule, Step
from bedstone.lane.touch import reads_of
from bedstone.library.kernel import Join, KernelSet, Settled
from bedstone.spec.manifest import Expr


@dataclass(frozen=True, slots=True)
class Together:
    """The launches of the steps at `places`; if there are several, those that `join` does.

    `given` are the operands of its kernel by name, those among them that it needs no more.
    """

    places: range
    join: Join | None = None
    given: Operands = field(default_factory=dict)

    def steps(self, schedule: Schedule) -> tuple[Step, ...]:
        """The steps of a schedule that these are."""
        return schedule.steps[self.places.start : self.places.stop]

    def kind(self, schedule: Schedule) -> str:
        """Its kind, as a census counts it."""
        return kind(self.steps(schedule)[0].launch) if self.join is None else self.join.kind

    def entry(self, schedule: Schedule) -> str:
        """The kernel that does it."""
        if self.join is not None:
            return self.join.kernel.entry
        return entry(self.steps(schedule)[0].launch)


def joined(schedule: Schedule, kernels: KernelSet, sizes: Sizes) -> Iterator[Together]:
    """Every step of a schedule in order, at each place as many of them together as may be."""
    if not kernels.joins:
        yield from (Together(range(at, at + 1)) for at in range(len(schedule.steps)))
        return
    finder = _Finder.of(schedule, kernels, sizes.largest)
    at = 0
    while at < len(finder.launches):
        found = finder.first(at) or Together(range(at, at + 1))
        yield found
        at = found.places.stop


@dataclass(frozen=True, slots=True)
class _Finder:
    """What decides: the launches, how often each tensor's memory is read, under the most rows."""

    launches: tuple[Launch, ...]
    entries: tuple[str, ...]
    homes: dict[str, str]
    readers: Counter[str]
    kernels: KernelSet
    sizes: Sizes

    @classmethod
    def of(cls, schedule: Schedule, kernels: KernelSet, sizes: Sizes) -> "_Finder":
        homes = {b.tensor: b.view_of for b in schedule.buffers.values() if b.view_of is not None}
        launches = tuple(step.launch for step in schedule.steps)
        readers = Counter(homes.get(name, name) for name in (*_read(launches), *schedule.outputs))
        entries = tuple(map(entry, launches))
        return cls(launches, entries, homes, readers, kernels, sizes)

    def first(self, at: int) -> Together | None:
        """The first of the set's joins that is for what begins there."""
        own: list[Operands] = []
        for join in self.kernels.joins.values():
            places = range(at, at + len(join.taken))
            if self.entries[at : places.stop] != tuple(one.entry for one in join.taken):
                continue
            launches = self.launches[at : places.stop]
            own = own if len(own) == len(places) else [operands(launch) for launch in launches]
            given = _merged(join, own)
            if given is not None and self._suits(join, given) and self._closed(join, launches):
                return Together(places, join, given)
        return None

    def _suits(self, join: Join, given: Operands) -> bool:
        """Whether a join's kernel is for launches of these sizes."""
        numbers = known_numbers(given, self.sizes)
        settled = all(
            self._number(given[name]) == _value(settled, numbers)
            for name, settled in join.settled.items()
        )
        return settled and join.suits(numbers, self.kernels.cache)

    def _number(self, operand: Operand) -> Expr | float:
        return operand.value if isinstance(operand, Real) else self.sizes.number(operand)

    def _closed(self, join: Join, launches: Sequence[Launch]) -> bool:
        """Whether what the launches hand each other, sequence by sequence, nobody else reads."""
        members = list(map(_members, launches))
        if len(set(map(len, members))) > 1:
            return False
        return all(self._handed(join, each) for each in zip(*members, strict=True))

    def _handed(self, join: Join, launches: Sequence[Launch]) -> bool:
        given = _merged(join, [operands(launch) for launch in launches])
        inside = Counter(self.homes.get(name, name) for name in _read(launches))
        return given is not None and all(
            isinstance(found := given[name], Values | Quant)
            and inside[home := self.homes.get(found.tensor, found.tensor)] == self.readers[home]
            for name in join.handed
        )


def _value(settled: Settled, numbers: Mapping[str, int]) -> int | float:
    if isinstance(settled, tuple):
        return prod(numbers[name] for name in settled)
    return settled


def _merged(join: Join, own: Sequence[Operands]) -> Operands | None:
    """The operands of all launches by their names; None where one name would be two things."""
    given: Operands = {}
    for one, operands_of in zip(join.taken, own, strict=True):
        for param, name in one.names.items():
            if given.setdefault(name, operands_of[param]) != operands_of[param]:
                return None
    return given


def _members(launch: Launch) -> tuple[Launch, ...]:
    return launch.members if isinstance(launch, Sequences) else (launch,)


def _read(launches: Sequence[Launch]) -> Iterator[str]:
    """The tensors that are read, each as often as it is."""
    return (read.tensor for launch in launches for read in reads_of(launch))
