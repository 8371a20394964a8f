"""The verifier: it accepts what the lane makes, and no mutation of it that changes a result."""

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bedstone.errors import BedstoneError
from bedstone.graph.step import AtParam, Fixed, StepGraph
from bedstone.lane.facts import Facts, Knobs
from bedstone.lane.launch import Attention, ToRows, ToScratch
from bedstone.lane.schedule import Buffer, Schedule, Slot
from bedstone.lane.verify import verify
from lane_graphs import CPU, LLAMA, QWEN3, graph_of, lowered, outcome, same, setting

MUTATIONS = 150

CHOICES: dict[str, list[Any]] = {
    "form": ["f32", "quant"],
    "format": ["q8_0", "f32"],
    "kind": ["neox", "pair"],
    "act": ["silu", "gelu_tanh"],
    "fn": ["add", "mul", "silu"],
    "dtype": ["f32", "i32"],
    "bias": [None, "model.norm.weight"],
    "view_of": [None, "x.0", "x.1"],
    "window": [None, 3],
    "softcap": [None, 0.5],
}


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
            return replace(value, **{name: self.leaf(getattr(value, name), name)})
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


def changed(schedule: Schedule) -> Iterator[Schedule]:
    for seed in range(MUTATIONS):
        mutant = Mutator(schedule, seed).mutated()
        if mutant != schedule:
            yield mutant


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_no_mutation_that_changes_a_result_is_accepted(form: str, numerics: Any) -> None:
    graph = graph_of(QWEN3, form)
    schedule = lowered(graph, numerics)
    given = setting(graph)
    expected = outcome(schedule, given)
    accepted = [mutant for mutant in changed(schedule) if not faults(mutant, graph)]
    assert all(same(outcome(mutant, given), expected) for mutant in accepted)
    assert len(accepted) < MUTATIONS // 8


def mutate(schedule: Schedule, cls: type, **fields: Any) -> Schedule:
    """The first launch of a class with fields changed."""
    at = next(i for i, s in enumerate(schedule.steps) if isinstance(s.launch, cls))
    step = schedule.steps[at]
    launch: Any = step.launch
    changed = replace(step, launch=replace(launch, **fields))
    return replace(schedule, steps=(*schedule.steps[:at], changed, *schedule.steps[at + 1 :]))


@pytest.fixture
def graph() -> StepGraph:
    return graph_of(LLAMA, "decode")


def test_a_launch_before_its_input_is_named(graph: StepGraph) -> None:
    schedule = lowered(graph)
    first, second, *rest = schedule.steps
    (fault,) = faults(replace(schedule, steps=(second, first, *rest)), graph)
    assert fault == "step 0 (norm) reads `x.0` (f32) where memory holds another value"


def test_attention_before_its_keys_are_set_is_stale(graph: StepGraph) -> None:
    schedule = lowered(graph)
    at = next(i for i, s in enumerate(schedule.steps) if isinstance(s.launch, Attention))
    steps = list(schedule.steps)
    steps[at - 2], steps[at] = steps[at], steps[at - 2]
    found = faults(replace(schedule, steps=tuple(steps)), graph)
    assert found[0].startswith(f"step {at - 2} (attention) reads")


def test_a_wrong_row_is_another_table(graph: StepGraph) -> None:
    schedule = lowered(graph, held=("gemv_parts",))
    at = next(
        i for i, s in enumerate(schedule.steps) if isinstance(getattr(s.launch, "dst", 0), ToRows)
    )
    step: Any = schedule.steps[at]
    wrong = replace(step, launch=replace(step.launch, dst=replace(step.launch.dst, at=Fixed(0))))
    steps = (*schedule.steps[:at], wrong, *schedule.steps[at + 1 :])
    assert faults(replace(schedule, steps=steps), graph) == [
        f"step {at} (gemv) makes another table than `v.0@1`"
    ]


def test_a_row_of_a_scratch_table_written_twice_is_refused() -> None:
    graph = graph_of(LLAMA, "batch")
    schedule = lowered(graph, held=("sequences",))
    at = [i for i, s in enumerate(schedule.steps) if isinstance(s.launch, Attention)][1]
    step: Any = schedule.steps[at]
    assert isinstance(step.launch.dst, ToScratch)
    wrong = replace(step, launch=replace(step.launch, dst=replace(step.launch.dst, row=0)))
    steps = (*schedule.steps[:at], wrong, *schedule.steps[at + 1 :])
    assert faults(replace(schedule, steps=steps), graph) == [
        f"step {at} (attention) makes another table than `l0.rows@2`"
    ]


def test_a_launch_may_not_write_what_it_reads(graph: StepGraph) -> None:
    schedule = lowered(graph)
    read, written = schedule.buffers["x.0"], schedule.buffers["l0.n"]
    assert read.f32 is not None
    buffers = {**schedule.buffers, "l0.n": replace(written, f32=read.f32)}
    assert faults(replace(schedule, buffers=buffers), graph) == [
        "step 1 (norm) writes `l0.n` (f32) over memory it reads or writes besides"
    ]


def test_memory_shared_too_soon_is_found_where_it_is_read(graph: StepGraph) -> None:
    schedule = lowered(graph)
    early, late = schedule.buffers["x.0"], schedule.buffers["l0.o"]
    assert early.f32 is not None
    buffers = {**schedule.buffers, "l0.o": replace(late, f32=early.f32)}
    (fault,) = faults(replace(schedule, buffers=buffers), graph)
    assert fault.endswith("where memory holds another value") or "besides" in fault


def test_a_table_not_written_is_missed_by_the_next_step(graph: StepGraph) -> None:
    schedule = lowered(graph, held=("rope_set", "linear_set"))
    last = max(i for i, s in enumerate(schedule.steps) if type(s.launch).__name__ == "SetRows")
    steps = (*schedule.steps[:last], *schedule.steps[last + 1 :])
    found = faults(replace(schedule, steps=steps), graph)
    assert any("is computed 0 times, not 1" in fault for fault in found)


def test_values_nobody_reads_take_no_memory(graph: StepGraph) -> None:
    schedule = lowered(graph, "quantized")
    idle = schedule.buffers["l0.n"]
    assert idle.f32 is None
    assert idle.quant is not None
    room = replace(idle, f32=Slot(schedule.arena_bytes, 4 * idle.rows * idle.width))
    wider = replace(
        schedule,
        buffers={**schedule.buffers, "l0.n": room},
        arena_bytes=schedule.arena_bytes + 4096,
    )
    assert faults(wider, graph) == ["buffer `l0.n` holds values that nobody reads"]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"offset": 4}, "buffer `x.0` lies at 4 in 256 bytes, not 256"),
        ({"nbytes": 128}, "in 128 bytes, not 256"),
        ({"offset": 1 << 30}, f"buffer `x.0` lies at {1 << 30} in 256 bytes, not 256"),
    ],
)
def test_a_slot_has_the_size_of_its_tensor_and_lies_in_the_arena(
    graph: StepGraph, changes: dict[str, int], fault: str
) -> None:
    schedule = lowered(graph)
    buffer = schedule.buffers["x.0"]
    assert buffer.f32 is not None
    moved: Buffer = replace(buffer, f32=replace(buffer.f32, **changes))
    found = faults(replace(schedule, buffers={**schedule.buffers, "x.0": moved}), graph)
    assert any(fault in each for each in found)


def test_a_fusion_that_explains_nothing_is_a_fault(graph: StepGraph) -> None:
    schedule = lowered(graph)
    found = faults(replace(schedule, fusions=schedule.fusions[1:]), graph)
    assert len(found) == 1
    assert found[0].endswith("which no fusion explains")


def test_a_launch_the_lane_lacks_is_a_fault(graph: StepGraph) -> None:
    wrong = mutate(lowered(graph), Attention, splits=2)
    assert any("cannot run" in fault for fault in faults(wrong, graph))


def test_an_attention_over_another_span_is_a_fault(graph: StepGraph) -> None:
    wrong = mutate(lowered(graph), Attention, span=31)
    assert [fault for fault in faults(wrong, graph) if "attends 31 rows, not 32" in fault]


def test_what_a_plan_returns_has_been_verified(
    graph: StepGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedstone.lane.plan.verify", lambda *_: ["step 3 lies"])
    with pytest.raises(BedstoneError, match="does not compute its graph:\n  step 3 lies"):
        lowered(graph)
