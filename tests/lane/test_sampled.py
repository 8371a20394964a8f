"""Steps that draw their tokens: planned as any other, closed with what was drawn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bedstone.lane.census import census
from bedstone.lane.entries import entry
from bedstone.lane.launch import Advance, Finish, Read, Sample
from bedstone.oracle.draw import Wish
from bedstone.oracle.schedule import ScheduleOracle
from bedstone.oracle.step import StepOracle
from lane_graphs import LLAMA, QWEN3, graph_of, lowered, setting
from lane_mutants import faults

FORMS = ("decode", "chunk", "batch")
WISHES = (
    Wish(1.0, top_k=7, seed=4),
    Wish(2.0, top_p=0.9, seed=5, allowed=range(40)),
    Wish(edits=[(3, 1.0, 90.0)]),
)


@pytest.mark.parametrize("form", FORMS)
def test_only_the_end_of_a_step_is_another(form: Any) -> None:
    plain, drawn = (lowered(graph_of(QWEN3, form, sampled=sampled)) for sampled in (False, True))
    assert plain.steps[:-1] == drawn.steps[:-2]
    counted = census(drawn) - census(plain)
    assert counted == {"sample": 1, "finish": 1}
    rows = "_rows" if form == "batch" else ""
    assert [entry(step.launch) for step in drawn.steps[-2:]] == [f"sample{rows}", f"finish{rows}"]


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("form", FORMS)
def test_a_schedule_draws_what_its_graph_does(form: Any, numerics: Any) -> None:
    graph = graph_of(LLAMA, form, sampled=True)
    given = setting(graph)
    ours = ScheduleOracle(lowered(graph, numerics), given.constants, tables=given.copied())
    theirs = StepOracle(
        graph, given.constants, np.float32, numerics=numerics, tables=given.copied()
    )
    sequences = 3 if form == "batch" else 1
    found = set()
    for first in range(3):
        wishes = [WISHES[(first + i) % 3] for i in range(sequences)]
        ours.wishes = theirs.wishes = wishes
        made, expected = (each.run(given.ids, given.params) for each in (ours, theirs))
        assert made["next"].tolist() == expected["next"].tolist()
        assert ours.next_ids == {"token": made["next"][:, 0].tolist()}
        found.add(tuple(made["next"][:, 0].tolist()))
    assert len(found) > 1


def test_a_row_without_a_token_keeps_a_step_where_it_is() -> None:
    graph = graph_of(LLAMA, "batch", sampled=True)
    given = setting(graph)
    bad = {name: value.copy() for name, value in given.constants.items()}
    bad["model.norm.weight"][:] = np.inf
    oracle = ScheduleOracle(lowered(graph), bad, tables=given.copied())
    with np.errstate(all="ignore"):
        made = oracle.run(given.ids, given.params)["next"]
    assert made.tolist() == [[0], [0], [0]]
    assert oracle.next_params == given.params


def test_a_schedule_that_ends_otherwise_is_refused() -> None:
    graph = graph_of(LLAMA, "decode", sampled=True)
    schedule = lowered(graph)
    *before, draw, close = schedule.steps
    assert isinstance(draw.launch, Sample)
    assert isinstance(close.launch, Finish)

    def found(*end: Any) -> str:
        return "\n".join(faults(replace(schedule, steps=(*before, *end)), graph))

    assert found(draw, close) == ""
    assert "nothing closes the step" in found(draw)
    smaller = replace(draw, launch=replace(draw.launch, vocab=draw.launch.vocab - 1))
    assert "drawn" in found(smaller, close)
    other = replace(close.launch, x=Read("logits"))
    assert "next" in found(draw, replace(close, launch=other))
    moved = replace(close.launch, advances=(Advance("token", "pos", 1),))
    assert "advances other tokens" in found(draw, replace(close, launch=moved))
