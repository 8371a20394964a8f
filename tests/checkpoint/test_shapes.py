"""The shapes of known models are those that were published."""

import math

import pytest

from bedstone.checkpoint.names import expected_tensors
from bedstone.checkpoint.shapes import shape_checkpoint, shape_names
from bedstone.errors import CallerError

PARAMETERS = {
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.1-8b": 8_030_261_248,
    "smollm2-135m": 134_515_008,
    "mistral-7b": 7_241_732_096,
    "gemma-3-4b": 3_880_263_168,
    "qwen3-30b-a3b": 30_532_122_624,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_419_200,
    "qwen3-next-80b-a3b": 79_674_391_296,
}
"""The sizes of the published checkpoints, in values; Gemma's without the part that sees."""


def test_every_shape_has_its_published_size():
    assert set(shape_names()) == set(PARAMETERS)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_shape_has_as_many_values_as_the_published_checkpoint(name):
    tensors = expected_tensors(shape_checkpoint(name).config)
    assert sum(map(math.prod, tensors.values())) == PARAMETERS[name]


def test_matrices_are_in_the_format_asked_for_and_vectors_of_a_quantized_model_are_f32():
    held = shape_checkpoint("qwen3-0.6b", "q4_0")
    assert held.format("model.layers.0.self_attn.q_proj.weight") == "q4_0"
    assert held.format("model.layers.0.self_attn.q_norm.weight") == "f32"
    assert shape_checkpoint("qwen3-0.6b").format("model.norm.weight") == "bf16"


def test_a_matrix_whose_rows_are_no_whole_blocks_stays_f32():
    held = shape_checkpoint("smollm2-135m", "q4_k")
    assert held.format("model.layers.0.self_attn.q_proj.weight") == "f32"
    assert held.format("model.layers.0.mlp.down_proj.weight") == "q4_k"


def test_routers_and_matrices_of_one_row_of_a_quantized_model_stay_f32():
    held, layer = shape_checkpoint("qwen3-next-80b-a3b", "q4_0"), "model.layers.0.mlp"
    assert held.format(f"{layer}.gate.weight") == "f32"
    assert held.format(f"{layer}.shared_expert_gate.weight") == "f32"
    assert held.format(f"{layer}.shared_expert.gate_proj.weight") == "q4_0"


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(CallerError, match=r"no config `gpt-2`: expected one of `qwen3-0.6b`, "):
        shape_checkpoint("gpt-2")
