"""Four rows a warp: which products are wide enough, and that the width changes nothing else."""

from collections.abc import Iterator

import pytest

from bedstone.lane.facts import Knobs
from bedstone.lane.launch import Glu, Launch, Parts, Product
from bedstone.lane.schedule import Schedule
from lane_graphs import LLAMA, QWEN3_4B, config, graph_of, lowered, outcome, same, setting
from lane_zoo import SHALLOW


def widths(launch: Launch) -> Iterator[tuple[int, int]]:
    """The outputs of each product of a launch, and how many of them are one warp's."""
    match launch:
        case Product(m=m) | Glu(gate=m):
            yield m.n, launch.rows_a_warp
        case Parts(parts=parts):
            yield from ((part.m.n, part.rows_a_warp) for part in parts)
        case _:
            return


def chosen(schedule: Schedule) -> dict[int, set[int]]:
    """For each number of outputs, the widths that products of so many take."""
    found: dict[int, set[int]] = {}
    for step in schedule.steps:
        for outputs, rows in widths(step.launch):
            found.setdefault(outputs, set()).add(rows)
    return found


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
def test_what_is_wide_in_a_step_of_qwen3_4b(form: str) -> None:
    """The gated unit and the head; no projection of 4096 outputs or fewer."""
    schedule = lowered(graph_of(QWEN3_4B, form, "q4_0"), "quantized")
    assert chosen(schedule) == {4096: {1}, 1024: {1}, 2560: {1}, 9728: {4}, 151936: {4}}


@pytest.mark.parametrize(
    ("outputs", "rows"), [(64, 1), (92, 1), (96, 4), (97, 1), (98, 1), (100, 4)]
)
def test_a_wide_product_has_outputs_enough_and_whole_fours(outputs: int, rows: int) -> None:
    model = config("LlamaForCausalLM", intermediate=outputs)
    schedule = lowered(graph_of(model, "decode", "f32"), knobs=Knobs(wide_outputs=96))
    glu = next(step.launch for step in schedule.steps if isinstance(step.launch, Glu))
    assert glu.rows_a_warp == rows


def test_parts_of_one_launch_are_wide_each_by_itself() -> None:
    schedule = lowered(graph_of(LLAMA, "decode"), knobs=Knobs(wide_outputs=64))
    parts = next(step.launch for step in schedule.steps if isinstance(step.launch, Parts))
    assert [(part.m.n, part.rows_a_warp) for part in parts.parts] == [(64, 4), (32, 1), (32, 1)]


def test_held_back_every_product_has_a_row_a_warp() -> None:
    graph = graph_of(QWEN3_4B, "decode", "q4_0")
    assert set().union(*chosen(lowered(graph, held=("rows_a_warp",))).values()) == {1}


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("family", SHALLOW)
def test_the_width_changes_no_bit_and_no_launch(family: str, form: str) -> None:
    graph = graph_of(SHALLOW[family], form)
    given = setting(graph)
    knobs = Knobs(wide_outputs=32)
    wide, narrow = (lowered(graph, knobs=knobs, held=held) for held in ((), ("rows_a_warp",)))
    assert 4 in set().union(*chosen(wide).values())
    assert len(wide.steps) == len(narrow.steps)
    assert wide.buffers == narrow.buffers
    assert same(outcome(wide, given), outcome(narrow, given))
