"""What the lane makes of well-known models: launches by kind, counted once and for all."""

import json
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.graph.step import StepGraph
from bedstone.lane.census import census
from bedstone.lane.plan import RULES
from bedstone.models import step_graph
from lane_graphs import lowered

GOLDEN: dict[str, dict[str, dict[str, int]]] = json.loads(
    Path(__file__).with_name("census.json").read_text()
)
"""A change of the table or of a family moves these on purpose or not at all."""

LAUNCHES = {
    "llama-3.2-1b": (292, 132),
    "qwen3-4b": (724, 292),
    "gemma-3-4b": (753, 276),
    "qwen3-30b-a3b": (1204, 436),
    "qwen3-next-80b-a3b": (1876, 472),
    "deepseek-v2-lite": (857, 327),
    "deepseek-v3": (2045, 855),
}
"""Launches of a decode step: each op by itself, and with every rule."""


@cache
def shape_graph(name: str, form: Any) -> StepGraph:
    shape = shape_checkpoint(name, "bf16" if name.startswith("qwen3-next") else "q4_0")
    return step_graph(
        shape.config,
        form,
        formats={const: shape.format(const) for const in shape.constants},
        rows={"decode": 1, "chunk": 512, "batch": 4}[form],
        capacity=2048,
        row_param="tokens" if form == "chunk" else None,
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_by_kind(name: str, form: str) -> None:
    schedule = lowered(shape_graph(name, form), "quantized")
    counts = Counter(census(schedule), launches=len(schedule.steps))
    assert counts == Counter(GOLDEN[name][form])


@pytest.mark.parametrize(("name", "launches"), LAUNCHES.items(), ids=LAUNCHES)
def test_launches_of_a_decode_step(name: str, launches: tuple[int, int]) -> None:
    graph = shape_graph(name, "decode")
    unfused, fused = launches
    assert len(lowered(graph, held=RULES).steps) == unfused
    assert GOLDEN[name]["decode"]["launches"] == fused


@pytest.mark.parametrize("name", GOLDEN)
def test_a_batch_takes_as_many_launches_as_one_sequence(name: str) -> None:
    assert GOLDEN[name]["batch"]["launches"] == GOLDEN[name]["decode"]["launches"]


@pytest.mark.parametrize(("name", "seconds"), [("qwen3-4b", 2), ("deepseek-v3", 6)])
def test_a_step_is_planned_in_time(name: str, seconds: float) -> None:
    graph = shape_graph(name, "decode")
    start = time.process_time()
    lowered(graph, "quantized")
    assert time.process_time() - start < seconds
