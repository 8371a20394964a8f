"""A plan in numbers: launches by layer, fusions, misses."""

from collections import Counter

import pytest

from bedstone.build.summary import launch_layers, summarize
from planned import planned

DECODE = {
    "llama-3.2-1b": (132, 8),
    "qwen3-4b": (292, 8),
    "smollm2-135m": (244, 8),
    "mistral-7b": (260, 8),
    "gemma-3-4b": (276, 8),
    "qwen3-30b-a3b": (436, 9),
}
"""Launches of a decode step, and of one of its layers."""


@pytest.mark.parametrize("matrices", ["bf16", "q4_0"])
@pytest.mark.parametrize("name", DECODE)
def test_a_decode_step_is_as_many_launches_a_layer_and_four(name, matrices):
    found = summarize(planned(name, matrices=matrices), 100)
    assert (found.launches, found.per_layer) == DECODE[name]
    assert set(found.layers) == {found.per_layer}
    assert found.outside == 4


@pytest.mark.parametrize(
    ("name", "launches", "layers"),
    [
        ("qwen3-next-80b-a3b", 472, {10: 36, 9: 12}),
        ("deepseek-v2-lite", 327, {12: 26, 11: 1}),
        ("deepseek-v3", 855, {14: 58, 13: 3}),
    ],
)
def test_layers_of_several_kinds_are_counted_apart(name, launches, layers):
    found = summarize(planned(name), 100)
    assert found.launches == launches
    assert Counter(found.layers) == layers
    assert (found.per_layer, found.outside) == (max(layers), 4)


@pytest.mark.parametrize("form", ["chunk", "batch"])
@pytest.mark.parametrize(
    "name", ["gemma-3-4b", "qwen3-30b-a3b", "qwen3-next-80b-a3b", "deepseek-v2-lite"]
)
def test_every_family_is_counted_in_every_form(name, form):
    found = summarize(planned(name, form), 100)
    assert sum(found.layers) + found.outside == found.launches
    assert min(found.layers) >= 8
    assert found.cost.weights > found.cost.cache > 0


@pytest.mark.parametrize(
    ("name", "numerics", "launches"),
    [
        ("llama-3.2-1b", "precise", 292),
        ("llama-3.2-1b", "quantized", 357),
        ("qwen3-4b", "precise", 724),
        ("qwen3-4b", "quantized", 869),
    ],
)
def test_without_fusions_each_op_is_a_launch(name, numerics, launches):
    step = planned(name, matrices="q4_0", numerics=numerics, unfused=True)
    found = summarize(step, 100)
    assert found.launches == launches
    assert not found.fusions
    assert {group.reason for group in found.misses} >= {"held"}


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
def test_layers_and_the_launches_outside_are_all(form):
    step = planned("qwen3-0.6b", form)
    found = summarize(step, 100)
    assert sum(found.layers) + found.outside == found.launches == sum(found.census.values())
    assert len(found.layers) == 28
    layers = launch_layers(step)
    assert layers[0] is None
    assert layers[-1] is None
    inner = [layer for layer in layers if layer is not None]
    assert inner == sorted(inner)


def test_counts_stand_most_first():
    counts = list(summarize(planned("qwen3-0.6b"), 100).fusions.values())
    assert counts == sorted(counts, reverse=True)


def test_misses_of_one_rule_and_reason_are_one_group():
    groups = summarize(planned("qwen3-0.6b", "chunk"), 100).misses
    keys = [(group.rule, group.reason) for group in groups]
    assert len(keys) == len(set(keys))
    misses = planned("qwen3-0.6b", "chunk").schedule.misses
    assert sum(group.count for group in groups) == len(misses) > 0


def test_a_chunk_is_counted_where_all_its_rows_have_a_position():
    assert summarize(planned("qwen3-0.6b", "chunk"), 100).at == 512
    assert summarize(planned("qwen3-0.6b"), 100).at == 100


def test_a_summary_becomes_json_with_its_time():
    found = summarize(planned("qwen3-0.6b"), 100)
    written = found.json(bandwidth=1e9, compute=None)
    assert written["bytes"] == sum(written["traffic"].values())
    assert written["roofline_seconds"] == pytest.approx(written["bytes"] / 1e9)
    assert written["arena"]["bytes"] + written["arena"]["saved"] == found.unshared_bytes
