"""The verifier: it accepts what the lane makes, and no mutation of it that changes a result."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from bedstone.errors import BedstoneError
from bedstone.graph.step import Fixed, StepGraph
from bedstone.lane.launch import (
    Attention,
    HeadProduct,
    Rope,
    Sequences,
    ToRows,
    ToScratch,
)
from bedstone.lane.schedule import Buffer, Schedule, Slot
from lane_graphs import LLAMA, graph_of, lowered, outcome, same, setting
from lane_mutants import faults, mutants
from lane_zoo import SHALLOW

UNSAFE = 93
"""Mutants to be refused for each form and numerics of each family: over 5000 in all."""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("family", SHALLOW)
def test_no_mutation_that_changes_a_result_is_accepted(
    family: str, form: str, numerics: Any
) -> None:
    graph = graph_of(SHALLOW[family], form)
    schedule = lowered(graph, numerics)
    given = setting(graph)
    expected = outcome(schedule, given)
    refused = 0
    for mutant in itertools.islice(mutants(schedule), 2 * UNSAFE):
        if faults(mutant, graph):
            refused += 1
        else:
            assert same(outcome(mutant, given), expected)
        if refused == UNSAFE:
            break
    assert refused == UNSAFE


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


# --- a batch's sequences as one launch ---------------------------------------------------------


def joined(schedule: Schedule, cls: type) -> int:
    """The first launch over sequences of a class."""
    return next(
        at
        for at, step in enumerate(schedule.steps)
        if isinstance(step.launch, Sequences) and isinstance(step.launch.whole, cls)
    )


def with_launch(schedule: Schedule, at: int, **fields: Any) -> Schedule:
    launch: Any = schedule.steps[at].launch
    step = replace(schedule.steps[at], launch=replace(launch, **fields))
    return replace(schedule, steps=(*schedule.steps[:at], step, *schedule.steps[at + 1 :]))


@pytest.fixture
def batch() -> StepGraph:
    return graph_of(LLAMA, "batch")


def test_sequences_in_another_order_are_no_one_launch(batch: StepGraph) -> None:
    schedule = lowered(batch)
    at = joined(schedule, Rope)
    launch: Any = schedule.steps[at].launch
    found = faults(with_launch(schedule, at, members=launch.members[::-1]), batch)
    assert f"step {at} (rope_parts) takes other positions for sequence 0" in found


def test_a_launch_has_a_row_for_each_sequence(batch: StepGraph) -> None:
    schedule = lowered(batch)
    at = joined(schedule, Rope)
    launch: Any = schedule.steps[at].launch
    fewer = with_launch(schedule, at, members=launch.members[:2])
    assert f"step {at} (rope_parts) joins 2 sequences, not 3" in faults(fewer, batch)
    short = with_launch(schedule, at, whole=replace(launch.whole, rows=2))
    assert f"step {at} (rope_parts) has no row for each sequence" in faults(short, batch)


def test_a_member_that_does_something_else_is_named(batch: StepGraph) -> None:
    schedule = lowered(batch)
    at = joined(schedule, Attention)
    launch: Any = schedule.steps[at].launch
    other = replace(launch.members[2], scale=1.0)
    found = faults(with_launch(schedule, at, members=(*launch.members[:2], other)), batch)
    assert f"step {at} (attention) does something else for sequence 2" in found


def test_what_one_launch_makes_lies_in_equal_steps(batch: StepGraph) -> None:
    schedule = lowered(batch)
    at = joined(schedule, Rope)
    moved = schedule.buffers["l0.qr.1"]
    assert moved.f32 is not None
    far = Slot(schedule.arena_bytes, moved.f32.nbytes)
    wider = replace(
        schedule,
        buffers={**schedule.buffers, "l0.qr.1": replace(moved, f32=far, beside=None)},
        arena_bytes=schedule.arena_bytes + 4096,
    )
    found = faults(wider, batch)
    assert f"step {at} (rope_parts) finds operands of sequence 1 elsewhere" in found
    assert any("buffer `l0.qr.2` lies at" in fault for fault in found)


# --- parts of rows ------------------------------------------------------------------------------


def test_a_part_read_as_if_it_lay_in_order_is_another_value() -> None:
    graph = graph_of(SHALLOW["deepseek-v2"], "decode")
    schedule = lowered(graph)
    at = next(i for i, s in enumerate(schedule.steps) if isinstance(s.launch, HeadProduct))
    launch: Any = schedule.steps[at].launch
    step = replace(schedule.steps[at], launch=replace(launch, x=replace(launch.x, window=None)))
    found = faults(
        replace(schedule, steps=(*schedule.steps[:at], step, *schedule.steps[at + 1 :])), graph
    )
    assert found == [f"step {at} (head_product) reads `l0.qo` (f32) as if it lay otherwise"]


def test_a_part_may_not_reach_out_of_its_tensor() -> None:
    graph = graph_of(SHALLOW["deepseek-v2"], "decode")
    schedule = lowered(graph)
    part = replace(schedule.buffers["l0.qo"], offset=64)
    found = faults(replace(schedule, buffers={**schedule.buffers, "l0.qo": part}), graph)
    assert "buffer `l0.qo` reaches out of `l0.q`" in found


def test_only_a_launch_that_may_writes_over_its_operand(graph: StepGraph) -> None:
    schedule = lowered(graph)
    old, new = schedule.buffers["x.0"], schedule.buffers["l0.h"]
    assert old.f32 == new.f32
    rows = schedule.buffers["l0.a"]
    over = {**schedule.buffers, "l0.o": replace(schedule.buffers["l0.o"], f32=rows.f32)}
    found = faults(replace(schedule, buffers=over), graph)
    assert any("writes `l0.o` (f32) over memory it reads" in fault for fault in found)
