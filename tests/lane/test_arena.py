"""The arena: memory shared as far as lifetimes allow, and no further."""

import itertools

import pytest

from bedstone.lane.facts import Knobs
from bedstone.lane.schedule import Schedule, Slot
from bedstone.lane.touch import touches
from lane_graphs import LLAMA_1B, QWEN3, config, graph_of, lowered


def slots(schedule: Schedule, tensor: str, form: str) -> list[Slot]:
    buffer = schedule.buffers.get(tensor)
    if buffer is None:
        return []
    if buffer.view_of is not None and (buffer.quant is None or form == "f32"):
        buffer = schedule.buffers[buffer.view_of]
    if form == "f32":
        return [] if buffer.f32 is None else [buffer.f32]
    quant = buffer.quant
    assert quant is not None
    return [quant.codes, quant.scales, quant.sums]


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_no_two_live_slots_share_a_byte(form: str, numerics: str) -> None:
    schedule = lowered(graph_of(QWEN3, form), numerics)
    spans: dict[tuple[int, str], tuple[Slot, int, int]] = {}
    for name, buffer in schedule.buffers.items():
        forms = [("f32", buffer.f32 is not None), ("quant", buffer.quant is not None)]
        for kind in (form for form, there in forms if there):
            first, last = span(schedule, name, kind)
            for i, slot in enumerate(slots(schedule, name, kind)):
                spans[i, f"{name} {kind}"] = (slot, first, last)
    for (a, from_a, to_a), (b, from_b, to_b) in itertools.combinations(spans.values(), 2):
        over = a == b and (to_a == from_b or to_b == from_a)
        if from_a <= to_b and from_b <= to_a and not over:
            assert a.end <= b.offset or b.end <= a.offset


@pytest.mark.parametrize("form", ["decode", "batch"])
def test_a_sum_takes_the_place_of_what_it_adds_to(form: str) -> None:
    graph = graph_of(QWEN3, form)
    apart = lowered(graph, knobs=Knobs(in_place=False))
    schedule = lowered(graph)
    slots = [schedule.buffers[name].f32 for name in ("x.0", "l0.h", "x.1", "l1.h", "x.2")]
    assert set(slots) == {slots[0]}
    assert schedule.arena_bytes <= apart.arena_bytes
    assert len({apart.buffers[name].f32 for name in ("x.0", "l0.h")}) == 2


def test_what_one_launch_of_a_batch_makes_lies_side_by_side() -> None:
    buffers = lowered(graph_of(QWEN3, "batch")).buffers
    turned = [buffers[f"l0.qr.{i}"] for i in range(3)]
    assert [buffer.beside for buffer in turned] == [None, "l0.qr.0", "l0.qr.1"]
    assert [b.f32.offset - turned[0].f32.offset for b in turned if b.f32 and turned[0].f32] == [
        0,
        256,
        512,
    ]


def span(schedule: Schedule, name: str, form: str) -> tuple[int, int]:
    """The first and last launch that touch a form of a tensor, itself or through a view."""
    views = {n for n, b in schedule.buffers.items() if b.view_of == name}
    at = [
        i
        for i, step in enumerate(schedule.steps)
        for touch in touches(step.launch)
        if touch.form == form and touch.tensor in {name, *views}
    ]
    end = len(schedule.steps) if {name, *views} & set(schedule.outputs) else max(at)
    return min(at), end


def test_the_bytes_saved_are_reported() -> None:
    schedule = lowered(graph_of(LLAMA_1B, "decode", "q4_0", capacity=64), "quantized")
    assert schedule.arena_bytes < 700_000
    assert schedule.unshared_bytes > 2 * schedule.arena_bytes


def test_layers_reuse_the_same_bytes() -> None:
    """Depth costs no memory: all but the outputs is free again after each layer."""
    two, four = (lowered(graph_of(config("Qwen3ForCausalLM", layers=n), "decode")) for n in (2, 4))
    assert two.arena_bytes == four.arena_bytes
