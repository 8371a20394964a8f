"""Qwen's hybrids as their configs describe them: kinds of layer, the delta net, what is refused."""

import pytest

from bedstone.checkpoint.config import ModelConfig, RecurrentConfig, require_config
from bedstone.checkpoint.constants import Window, constants
from bedstone.checkpoint.hf_config import parse_hf_config
from bedstone.checkpoint.names import expected_tensors
from bedstone.errors import WeightError

NEXT = {
    "architectures": ["Qwen3NextForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "decoder_sparse_step": 1,
    "eos_token_id": 151645,
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 5120,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "max_position_embeddings": 262144,
    "mlp_only_layers": [],
    "model_type": "qwen3_next",
    "moe_intermediate_size": 512,
    "norm_topk_prob": True,
    "num_attention_heads": 16,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "num_hidden_layers": 48,
    "num_key_value_heads": 2,
    "output_router_logits": False,
    "partial_rotary_factor": 0.25,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000000,
    "router_aux_loss_coef": 0.001,
    "shared_expert_intermediate_size": 512,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
DENSE = {
    name: value
    for name, value in NEXT.items()
    if "expert" not in name and "mlp_only" not in name and name not in ("norm_topk_prob",)
} | {
    "architectures": ["Qwen3_5ForCausalLM"],
    "attn_output_gate": True,
    "decoder_sparse_step": ...,
    "mamba_ssm_dtype": "float32",
    "model_type": "qwen3_5_text",
    "moe_intermediate_size": ...,
    "mtp_num_hidden_layers": 1,
    "output_router_logits": ...,
    "partial_rotary_factor": ...,
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [11, 11, 10],
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000000,
        "rope_type": "default",
    },
    "rope_scaling": ...,
    "rope_theta": ...,
    "router_aux_loss_coef": ...,
}


def parse(base: dict, **changes: object) -> ModelConfig:
    values = {k: v for k, v in (base | changes).items() if v is not ...}
    return parse_hf_config(values, "config.json", "m")


def test_three_layers_recur_for_each_that_attends():
    config = parse(NEXT)
    assert config.layer_kinds == ("recurrent", "recurrent", "recurrent", "full") * 12
    assert config.recurrent == RecurrentConfig(16, 32, 128, 128, 4, packed=True)
    assert (config.attention_gate, config.norm_plus_one, config.qk_norm) == (True, True, True)
    assert (config.rope.rot, config.rope.kind) == (64, "neox")
    assert config.sliding_window is None


def test_its_experts_share_one_behind_a_gate():
    mixture = parse(NEXT).mixture
    assert (mixture.experts, mixture.chosen, mixture.intermediate) == (512, 10, 512)
    assert (mixture.score, mixture.normalise, mixture.layers) == ("softmax", True, tuple(range(48)))
    assert (mixture.shared, mixture.shared_gate) == (512, True)


def test_a_dense_hybrid_has_products_apart_and_axes_that_change_nothing():
    config = parse(DENSE)
    assert config.mixture is None
    assert not config.recurrent.packed
    assert config.rope == parse(NEXT).rope
    shapes = expected_tensors(config)
    widths = {"qkv": 8192, "z": 4096, "b": 32, "a": 32}
    for part, width in widths.items():
        assert shapes[f"model.layers.0.linear_attn.in_proj_{part}.weight"] == (width, 2048)
    assert shapes["model.layers.3.self_attn.q_proj.weight"] == (2 * 16 * 256, 2048)
    assert "model.layers.3.linear_attn.A_log" not in shapes


def test_a_head_turns_by_a_quarter_unless_the_config_says_otherwise():
    bare = {"rope_type": "default", "rope_theta": 10000000}
    assert parse(DENSE, rope_parameters=bare).rope.rot == 64
    assert parse(DENSE, rope_parameters=bare, partial_rotary_factor=0.5).rope.rot == 128


def test_one_convolution_is_taken_apart_by_rows():
    known = constants(parse(NEXT, num_hidden_layers=1))
    name = "model.layers.0.linear_attn.conv1d"
    parts = {part: known[f"{name}.{part}.weight"] for part in ("query", "key", "value")}
    assert [part.shape for part in parts.values()] == [(2048, 4), (2048, 4), (4096, 4)]
    assert parts["key"].windows == (Window(f"{name}.weight", 2048, 2048),)
    assert parts["value"].windows == (Window(f"{name}.weight", 4096, 4096),)
    assert f"{name}.weight" not in known


def test_kinds_are_listed_or_follow_from_an_interval():
    listed = ["full_attention", "linear_attention"]
    assert parse(NEXT, num_hidden_layers=2, layer_types=listed).layer_kinds == ("full", "recurrent")
    every = parse(NEXT, num_hidden_layers=3, full_attention_interval=2).layer_kinds
    assert every == ("recurrent", "full", "recurrent")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": ["sliding_attention"]}, r"\['sliding_attention'\], expected a list of"),
        ({"layer_types": "linear_attention"}, "'linear_attention', expected a list of"),
        ({"attn_output_gate": False}, "`attn_output_gate` is False"),
        ({"use_sliding_window": True}, "`use_sliding_window` is True"),
        ({"linear_a_rank": 4}, "`linear_a_rank` is not known"),
        ({"linear_conv_kernel_dim": 0}, "`linear_conv_kernel_dim` .* is 0"),
    ],
)
def test_what_a_step_would_get_wrong_is_refused(changes, message):
    with pytest.raises(WeightError, match=message):
        parse(DENSE, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"linear_num_value_heads": 24}, "24 value heads over 16 key heads: expected a multiple"),
        ({"linear_conv_kernel_dim": 1}, "convolution of 1 rows: expected 2 to 1024"),
        ({"layer_types": ["full_attention"]}, "1 layer kinds for 48 layers: expected one each"),
    ],
)
def test_sizes_must_fit_each_other(changes, message):
    with pytest.raises(WeightError, match=message):
        require_config(parse(DENSE, **changes), "config.json")
