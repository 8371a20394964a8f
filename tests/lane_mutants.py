"""Schedules with one thing changed at random, as a defect of a pass might leave them."""

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bedstone.graph.step import AtParam, Fixed, StepGraph
from bedstone.lane.facts import Facts, Knobs
from bedstone.lane.operand import Columns, Read, Window
from bedstone.lane.schedule import Buffer, Schedule, Slot
from bedstone.lane.verify import verify
from lane_graphs import CPU

CHOICES: dict[str, list[Any]] = {
    "form": ["f32", "quant"],
    "format": ["q8_0", "f32"],
    "kind": ["neox", "pair"],
    "act": ["silu", "gelu_tanh"],
    "fn": ["add", "mul", "silu", "softmax", "sigmoid"],
    "dtype": ["f32", "i32"],
    "bias": [None, "model.norm.weight"],
    "view_of": [None, "x.0", "x.1"],
    "beside": [None, "x.0"],
    "live": [None, "pos"],
    "window": [None, 3],
    "lies": [None, Window(64, 16, 16), Window(128, 64, 64)],
    "columns": [None, Columns(0, 64), Columns(32, 48)],
    "taken": [None, 0, 1],
    "unit": [None, 8, 16],
    "softcap": [None, 0.5],
}

MEANT = {(Read, "window"): "lies", (Buffer, "window"): "lies", (Read, "row"): "taken"}
"""Fields that share a name with others and take other values."""


def faults(schedule: Schedule, graph: StepGraph) -> list[str]:
    return verify(schedule, Facts.of(graph, schedule.numerics, Knobs()), CPU)


class Mutator:
    """Changes one thing of a schedule at random."""

    def __init__(self, schedule: Schedule, seed: int) -> None:
        self.schedule = schedule
        self.rng = np.random.default_rng(seed)
        self.names = sorted({*schedule.buffers, *schedule.consts, *schedule.tables})

    def mutated(self) -> Schedule:
        return self.pick([self.swap, self.drop, self.repeat, self.launch, self.launch, self.buffer,
                          self.slot, self.ops])()  # fmt: skip

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def place(self) -> int:
        return int(self.rng.integers(len(self.schedule.steps)))

    def with_steps(self, steps: list[Any]) -> Schedule:
        return replace(self.schedule, steps=tuple(steps))

    def swap(self) -> Schedule:
        steps, i, j = list(self.schedule.steps), self.place(), self.place()
        steps[i], steps[j] = steps[j], steps[i]
        return self.with_steps(steps)

    def drop(self) -> Schedule:
        steps = list(self.schedule.steps)
        del steps[self.place()]
        return self.with_steps(steps)

    def repeat(self) -> Schedule:
        steps = list(self.schedule.steps)
        steps.insert(self.place(), self.pick(steps))
        return self.with_steps(steps)

    def ops(self) -> Schedule:
        steps, i, j = list(self.schedule.steps), self.place(), self.place()
        steps[i] = replace(steps[i], ops=steps[j].ops)
        return self.with_steps(steps)

    def launch(self) -> Schedule:
        steps, i = list(self.schedule.steps), self.place()
        steps[i] = replace(steps[i], launch=self.leaf(steps[i].launch))
        return self.with_steps(steps)

    def buffer(self) -> Schedule:
        name = self.pick(sorted(self.schedule.buffers))
        changed = self.leaf(self.schedule.buffers[name])
        return replace(self.schedule, buffers={**self.schedule.buffers, name: changed})

    def slot(self) -> Schedule:
        """A form of a buffer moved to where another lies."""
        buffers = dict(self.schedule.buffers)
        places = [b for b in buffers.values() if b.f32 is not None]
        one, other = self.pick(places), self.pick(places)
        assert one.f32 is not None
        assert other.f32 is not None
        buffers[one.tensor] = replace(one, f32=Slot(other.f32.offset, one.f32.nbytes))
        return replace(self.schedule, buffers=buffers)

    def leaf(self, value: Any, name: str = "") -> Any:
        """`value` with one leaf changed."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            if isinstance(value, AtParam | Fixed) and self.rng.random() < 0.5:
                return self.pick([Fixed(0), Fixed(1), AtParam("pos.0"), AtParam("pos")])
            name = self.pick([f.name for f in dataclasses.fields(value)])
            meant = MEANT.get((type(value), name), name)
            changed = self.leaf(getattr(value, name), meant)
            return replace(value, **{name: changed})
        if isinstance(value, tuple) and value:
            i = int(self.rng.integers(len(value)))
            return (*value[:i], self.leaf(value[i], name), *value[i + 1 :])
        return self.scalar(value, name)

    def scalar(self, value: Any, name: str) -> Any:
        if name in CHOICES:
            return self.pick(CHOICES[name])
        match value:
            case bool():
                return not value
            case int():
                return value + self.pick([-1, 1, 32, value])
            case float():
                return value * self.pick([0.5, 2.0])
            case str():
                return self.pick(self.names)
            case _:
                return value


def mutants(schedule: Schedule) -> Iterator[Schedule]:
    """Endless, from the same seeds each time; none equal to the schedule."""
    for seed in itertools.count():
        mutant = Mutator(schedule, seed).mutated()
        if mutant != schedule:
            yield mutant
