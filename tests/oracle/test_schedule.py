"""The schedule interpreter: literal about memory, and chained by what its arg-max leaves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.graph.step import StepGraph
from bedstone.lane.schedule import QuantSlots, Schedule, Slot
from bedstone.oracle.schedule import ScheduleOracle
from bedstone.oracle.step import StepOracle
from lane_graphs import LLAMA, QWEN3, graph_of, lowered, setting


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_steps_chain_from_a_prompt_without_a_caller_between(numerics: Any) -> None:
    """A chunk seeds the decode steps that follow; tables and tokens agree with the graphs'."""
    chunk, decode = graph_of(QWEN3, "chunk"), graph_of(QWEN3, "decode")
    weights = setting(decode).constants
    tables: dict[str, np.ndarray] = {}
    truth: dict[str, np.ndarray] = {}
    prompt = [5, 90, 17, 3]
    params = {"pos": 4, "tokens": 4}
    first = ScheduleOracle(lowered(chunk, numerics), weights, tables=tables)
    first.run({"prompt": prompt}, params)
    StepOracle(chunk, weights, np.float32, numerics=numerics, tables=truth).run(
        {"prompt": prompt}, params
    )
    step = ScheduleOracle(lowered(decode, numerics), weights, tables=tables)
    oracle = StepOracle(decode, weights, np.float32, numerics=numerics, tables=truth)
    ids, at = first.next_ids, first.next_params
    for length in range(5, 9):
        assert at == {"pos": length}
        logits, expected = step.run(ids, at)["logits"], oracle.run(ids, at)["logits"]
        assert np.array_equal(logits, expected)
        ids, at = step.next_ids, step.next_params
    assert all(np.array_equal(tables[name], truth[name], equal_nan=True) for name in truth)


def test_a_batch_advances_each_sequence() -> None:
    graph = graph_of(LLAMA, "batch")
    given = setting(graph)
    oracle = ScheduleOracle(lowered(graph), given.constants, tables=given.copied())
    out = oracle.run(given.ids, given.params)
    assert oracle.next_ids == {"token": [int(token) for token in out["next"][:, 0]]}
    assert oracle.next_params == {name: length + 1 for name, length in given.params.items()}


def run(schedule: Schedule, graph: StepGraph) -> np.ndarray:
    given = setting(graph)
    oracle = ScheduleOracle(schedule, given.constants, tables=given.copied())
    return oracle.run(given.ids, given.params)["logits"]


def test_memory_shared_too_soon_shows_in_the_result() -> None:
    graph = graph_of(LLAMA, "decode")
    schedule = lowered(graph)
    early, late = schedule.buffers["x.0"], schedule.buffers["l0.o"]
    shared = replace(schedule, buffers={**schedule.buffers, "l0.o": replace(late, f32=early.f32)})
    assert not np.array_equal(run(shared, graph), run(schedule, graph))


def test_a_launch_left_out_leaves_memory_unwritten() -> None:
    graph = graph_of(LLAMA, "decode")
    schedule = lowered(graph)
    without = replace(schedule, steps=(schedule.steps[0], *schedule.steps[2:]))
    assert np.isnan(run(without, graph)).all()


def test_sums_of_other_codes_spoil_what_reads_them() -> None:
    graph = graph_of(LLAMA, "decode")
    schedule = lowered(graph, "quantized")
    buffer = schedule.buffers["l0.n"]
    assert buffer.quant is not None
    away = Slot(schedule.arena_bytes, buffer.quant.sums.nbytes)
    moved = replace(
        schedule,
        arena_bytes=schedule.arena_bytes + 256,
        buffers={
            **schedule.buffers,
            "l0.n": replace(buffer, quant=replace(buffer.quant, sums=away)),
        },
    )
    assert np.array_equal(run(moved, graph), run(schedule, graph))
    overlaid = QuantSlots(buffer.quant.codes, buffer.quant.scales, buffer.quant.scales)
    spoiled = {**schedule.buffers, "l0.n": replace(buffer, quant=overlaid)}
    assert np.isnan(run(replace(schedule, buffers=spoiled), graph)).all()


def test_a_form_without_memory_is_named() -> None:
    graph = graph_of(LLAMA, "decode")
    schedule = lowered(graph, "quantized")
    buffers = {**schedule.buffers, "x.0": replace(schedule.buffers["x.0"], f32=None)}
    with pytest.raises(CallerError, match=r"`x\.0` has no values in memory"):
        run(replace(schedule, buffers=buffers), graph)
    buffers = {**schedule.buffers, "l0.n": replace(schedule.buffers["l0.n"], quant=None)}
    with pytest.raises(CallerError, match=r"`l0\.n` has no quantized form in memory"):
        run(replace(schedule, buffers=buffers), graph)
