"""The arena: memory shared as far as lifetimes allow, and no further."""

import itertools

import pytest

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
        if from_a <= to_b and from_b <= to_a:
            assert a.end <= b.offset or b.end <= a.offset


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
