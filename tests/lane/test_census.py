"""What the lane makes of well-known models: launches by kind, counted once and for all."""

import cProfile
import dataclasses
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
from lane_graphs import Formats, lowered, misses
from lane_zoo import ZOO

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
def shape_graph(name: str, form: Any, rows: int | None = None, matrices: Any = "q4_0") -> StepGraph:
    shape = shape_checkpoint(name, matrices)
    return step_graph(
        shape.config,
        form,
        formats={const: shape.format(const) for const in shape.constants},
        rows=rows or {"decode": 1, "chunk": 512, "batch": 4}[form],
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


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("matrices", ["bf16", "q4_0"])
def test_shared_networks_are_taken_in_whatever_their_matrices_are_held_in(
    matrices: Any, numerics: str
) -> None:
    graph = shape_graph("qwen3-next-80b-a3b", "decode", matrices=matrices)
    schedule = lowered(graph, numerics)
    assert not misses(schedule, "shared_expert")
    assert len(schedule.steps) == LAUNCHES["qwen3-next-80b-a3b"][1]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_batch_takes_as_many_launches_as_one_sequence(name: str) -> None:
    assert GOLDEN[name]["batch"]["launches"] == GOLDEN[name]["decode"]["launches"]


TIMES = [
    ("qwen3-4b", "decode", 1, 2),
    ("qwen3-4b", "chunk", 512, 2),
    ("qwen3-4b", "batch", 8, 2),
    ("deepseek-v3", "decode", 1, 6),
    pytest.param("qwen3-4b", "batch", 64, 30, marks=pytest.mark.slow),
]
"""Seconds of processor time a plan may take: several times what it does."""


@pytest.mark.parametrize(("name", "form", "rows", "seconds"), TIMES)
def test_a_step_is_planned_in_time(name: str, form: str, rows: int, seconds: float) -> None:
    graph = shape_graph(name, form, rows)
    start = time.process_time()
    lowered(graph, "quantized")
    assert time.process_time() - start < seconds


def calls(layers: int, sequences: int) -> int:
    """The function calls that planning a batch takes: what its time grows with."""
    model = dataclasses.replace(ZOO["qwen3"], layers=layers)
    graph = step_graph(
        model, "batch", formats=Formats("q8_0"), rows=sequences, capacity=32, row_param=None
    )
    lowered(graph, "quantized")
    counted = cProfile.Profile()
    counted.runcall(lowered, graph, "quantized")
    return sum(entry.callcount for entry in counted.getstats())


@pytest.mark.slow
def test_planning_grows_as_the_step_does() -> None:
    """Four times the layers, or the sequences, take no more than about four times the calls."""
    few = calls(layers=3, sequences=3)
    assert calls(layers=12, sequences=3) < 4.2 * few
    assert calls(layers=3, sequences=12) < 4.2 * few
