"""Quantized forms: written once, by whoever can, and values only where somebody reads them."""

from dataclasses import replace

import pytest

from bedstone.lane.entries import entry
from bedstone.lane.facts import Knobs
from bedstone.lane.schedule import Schedule
from lane_graphs import LLAMA, assert_computes, config, graph_of, kinds, lowered, without


def forms(schedule: Schedule, name: str) -> tuple[bool, bool]:
    buffer = schedule.buffers[name]
    return buffer.f32 is not None, buffer.quant is not None


def test_what_only_products_read_has_no_values() -> None:
    schedule = lowered(graph_of(LLAMA, "decode"), "quantized")
    assert forms(schedule, "l0.n") == (False, True)
    assert forms(schedule, "l0.glu") == (False, True)
    assert forms(schedule, "l0.a") == (False, True)
    assert forms(schedule, "l0.h") == (True, False)
    assert "quantize" not in kinds(schedule)


def test_precise_numerics_quantize_nothing() -> None:
    schedule = lowered(graph_of(LLAMA, "decode"))
    assert all(buffer.quant is None for buffer in schedule.buffers.values())


def test_dense_matrices_read_values_under_every_numerics() -> None:
    schedule = lowered(graph_of(LLAMA, "decode", "bf16"), "quantized")
    assert all(buffer.quant is None for buffer in schedule.buffers.values())


def test_a_producer_without_such_a_launch_is_followed_by_one_quantize() -> None:
    graph = graph_of(LLAMA, "decode")
    schedule = lowered(graph, "quantized", shim=without("attention_r_q"))
    assert kinds(schedule)["quantize"] == 2
    assert forms(schedule, "l0.a") == (True, True)
    at = [entry(step.launch) for step in schedule.steps].index("quantize")
    assert [entry(step.launch) for step in schedule.steps[at - 1 : at + 2]] == [
        "attention_r",
        "quantize",
        "linear_q_q8_0",
    ]
    assert schedule.steps[at].ops == ()
    assert_computes(schedule, graph, "quantized")


def test_quantizing_apart_costs_a_launch_for_each_tensor() -> None:
    schedule = lowered(graph_of(LLAMA, "decode"), "quantized", knobs=Knobs(fuse_quant=False))
    assert kinds(schedule)["quantize"] == 4 * LLAMA.layers + 1


def test_a_tensor_read_both_ways_is_written_in_both_forms() -> None:
    graph = graph_of(LLAMA, "decode")
    name = "model.layers.0.self_attn.k_proj.weight"
    dense = replace(graph.consts[name], format="f16")
    mixed = replace(graph, consts={**graph.consts, name: dense})
    schedule = lowered(mixed, "quantized")
    assert forms(schedule, "l0.n") == (True, True)
    assert entry(schedule.steps[1].launch) == "norm_fq"
    assert_computes(schedule, mixed, "quantized")


@pytest.mark.parametrize("form", ["decode", "batch"])
def test_groups_that_are_no_whole_blocks_are_quantized_after_the_attention(form: str) -> None:
    narrow = config("LlamaForCausalLM", heads=4, kv_heads=4, head_dim=16)
    graph = graph_of(narrow, form)
    schedule = lowered(graph, "quantized")
    assert kinds(schedule)["quantize"] == narrow.layers
    assert_computes(schedule, graph, "quantized")
