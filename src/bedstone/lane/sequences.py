"""A batch's launches over its sequences as one: the same launch of every sequence is joined.

What the members read must lie in equal steps: rows of one tensor do, and results of the members of
one launch are placed so (`stacks`). Joined launches keep every order that the step needs; where
they cannot, they stay apart.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bedstone.lane.conflicts import followers
from bedstone.lane.facts import Facts
from bedstone.lane.launch import (
    OneLaunch,
    Read,
    Sequences,
    ToScratch,
    Window,
)
from bedstone.lane.layout import View, memory_of
from bedstone.lane.member import Outliner
from bedstone.lane.schedule import Step
from bedstone.lane.shim import Shim
from bedstone.lane.touch import Leaf, places_of, reads_of, rewrite

Stacks = tuple[tuple[str, ...], ...]
"""Tensors of a row each that lie one after another in memory."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The steps of a batch, and the tensors that must lie side by side."""

    steps: tuple[Step, ...]
    stacks: Stacks


@dataclass(frozen=True, slots=True)
class _Group:
    """The steps, one of each sequence, that become one launch."""

    members: tuple[int, ...]
    whole: OneLaunch


def join_sequences(
    steps: tuple[Step, ...], facts: Facts, views: Mapping[str, View], shim: Shim
) -> Joined:
    """The steps with the launches of all sequences joined, wherever the lane has such a launch.

    One sequence has nothing to join.
    """
    if facts.graph.rows == 1:
        return Joined(steps, ())
    joiner = _Joiner(steps, facts, views, shim)
    widths = {name: value.width for name, value in facts.values.items()}
    after = followers(steps, views, widths)
    groups = list(joiner.groups())
    order = list(_ordered(after, groups))
    while len(order) < len(steps) - sum(len(group.members) - 1 for group in groups):
        groups = _less(groups, set(order))
        order = list(_ordered(after, groups))
    return Joined(tuple(joiner.steps_of(order, groups)), joiner.stacks(groups))


def _less(groups: list[_Group], done: set[int]) -> list[_Group]:
    """The groups without the first that could not be put in order."""
    stuck = next(group for group in groups if group.members[-1] not in done)
    return [group for group in groups if group is not stuck]


def _ordered(after: list[set[int]], groups: list[_Group]) -> Iterator[int]:
    """Steps in order, a group where its last member stands; what waits for itself is left out."""
    last_of = {member: group.members[-1] for group in groups for member in group.members}
    later: dict[int, set[int]] = {}
    waits: dict[int, int] = {}
    for at, followed in enumerate(after):
        mine = last_of.get(at, at)
        waits.setdefault(mine, 0)
        found = later.setdefault(mine, set())
        for step in followed:
            other = last_of.get(step, step)
            if other != mine and other not in found:
                found.add(other)
                waits[other] = waits.get(other, 0) + 1
    free = [step for step, count in waits.items() if count == 0]
    heapq.heapify(free)
    while free:
        step = heapq.heappop(free)
        yield step
        for other in later[step]:
            waits[other] -= 1
            if waits[other] == 0:
                heapq.heappush(free, other)


@dataclass(slots=True)
class _Joiner:
    steps: tuple[Step, ...]
    facts: Facts
    views: Mapping[str, View]
    shim: Shim
    _outliner: Outliner = field(init=False)

    def __post_init__(self) -> None:
        self._outliner = Outliner(self.facts, self.views)

    def groups(self) -> Iterator[_Group]:
        """What is the same launch for every sequence of the batch."""
        found: dict[Any, dict[int, int]] = {}
        for at, step in enumerate(self.steps):
            outline = None
            if not isinstance(step.launch, Sequences):
                outline = self._outliner.outline(step.launch)
            if outline is not None:
                found.setdefault(outline.same, {})[outline.sequence] = at
        for members in found.values():
            if sorted(members) == list(range(self.facts.graph.rows)):
                ordered = tuple(members[number] for number in sorted(members))
                whole = self._whole(self._launch(ordered[0]))
                if self.shim.lacks(whole) is None:
                    yield _Group(ordered, whole)

    def _launch(self, step: int) -> OneLaunch:
        launch = self.steps[step].launch
        if isinstance(launch, Sequences):
            raise TypeError("sequences are joined once")
        return launch

    def _whole(self, first: OneLaunch) -> OneLaunch:
        """The first sequence's launch with a row for each of them."""
        changed: Any = replace(first, rows=self.facts.graph.rows)
        whole: OneLaunch = rewrite(changed, self._spread)
        return whole

    def _spread(self, leaf: Leaf) -> Leaf:
        """A read of the first sequence's row as one of a row of each."""
        if not isinstance(leaf, Read):
            return leaf
        width, pitch = self.facts.width(leaf.tensor), self.facts.width(self._home(leaf))
        lies = leaf.window or Window(width, width, width)
        window = None if pitch == width else Window(pitch, lies.unit, lies.width)
        return replace(leaf, window=window)

    def _home(self, read: Read) -> str:
        """The tensor in whose memory a read finds its row."""
        if read.form == "quant" and read.tensor in self._outliner.own:
            return read.tensor
        return memory_of(read.tensor, self.views)

    def steps_of(self, order: list[int], groups: list[_Group]) -> Iterator[Step]:
        """The steps in their new order."""
        joined = {group.members[-1]: group for group in groups}
        for at in order:
            group = joined.get(at)
            if group is None:
                yield self.steps[at]
                continue
            steps = [self.steps[member] for member in group.members]
            yield Step(
                Sequences(group.whole, tuple(self._launch(m) for m in group.members)),
                tuple(op for step in steps for op in step.ops),
                tuple(sorted({node for step in steps for node in step.nodes})),
            )

    def stacks(self, groups: list[_Group]) -> Stacks:
        """The tensors of one kind that joined launches read or write, in the order of sequences."""
        own = self._outliner.own
        kinds: dict[int, dict[int, str]] = {}
        for tensor, (number, kind) in own.items():
            kinds.setdefault(kind, {})[number] = tensor
        touched: dict[int, None] = {}
        for group in groups:
            for member in group.members:
                for name in self._own(self._launch(member)):
                    touched[own[name][1]] = None
        return tuple(
            tuple(kinds[kind][number] for number in sorted(kinds[kind])) for kind in touched
        )

    def _own(self, launch: OneLaunch) -> Iterator[str]:
        names = [self._home(read) for read in reads_of(launch)]
        names += [place.tensor for place in places_of(launch) if not isinstance(place, ToScratch)]
        return (name for name in names if name in self._outliner.own)
