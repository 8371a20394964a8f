"""Gemma 3 configs as published: what they say in words of their own."""

import pytest

from bedstone.checkpoint.config import require_config
from bedstone.checkpoint.hf_config import parse_hf_config
from bedstone.checkpoint.names import expected_tensors
from bedstone.errors import WeightError

ONE_B = {
    "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "bos_token_id": 2,
    "cache_implementation": "hybrid",
    "eos_token_id": [1, 106],
    "final_logit_softcapping": None,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "initializer_range": 0.02,
    "intermediate_size": 6912,
    "max_position_embeddings": 32768,
    "model_type": "gemma3_text",
    "num_attention_heads": 4,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 262144,
}
LINEAR = {"rope_type": "linear", "factor": 8.0}


def parse(**changes):
    values = {name: value for name, value in (ONE_B | changes).items() if value is not ...}
    return parse_hf_config(values, "config.json", "tiny")


def test_gemma_as_published():
    config = parse()
    assert config.layer_kinds == (("sliding",) * 5 + ("full",)) * 4 + ("sliding",) * 2
    assert [config.window(layer) for layer in (4, 5, 6)] == [512, None, 512]
    assert config.activation == "gelu_tanh"
    assert config.norm_plus_one
    assert config.sandwich_norms
    assert config.qk_norm
    assert config.tie_embeddings
    assert config.logit_cap is None
    assert config.eos == (1, 106)
    require_config(config, "config.json")


def test_gemma_norms_what_its_blocks_make():
    layer = "model.layers.0."
    norms = {n.removeprefix(layer) for n in expected_tensors(parse()) if n.startswith(layer)}
    assert {n.removesuffix(".weight") for n in norms if "layernorm" in n} == {
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    }


def test_c16_scores_are_scaled_by_a_number_of_their_own():
    sizes = {"hidden_size": 5376, "num_attention_heads": 32, "head_dim": 128}
    config = parse(**sizes, num_key_value_heads=16, query_pre_attn_scalar=168)
    assert config.attention_scale == pytest.approx(0.0771516750, abs=5e-11)


@pytest.mark.parametrize(
    "words",
    [
        {"rope_scaling": LINEAR},
        {
            "rope_theta": ...,
            "rope_local_base_freq": ...,
            "rope_scaling": ...,
            "rope_parameters": {
                "full_attention": LINEAR | {"rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        {
            "rope_theta": ...,
            "rope_local_base_freq": ...,
            "rope_scaling": ...,
            "rope_parameters": {"full_attention": LINEAR},
        },
    ],
)
def test_sliding_layers_turn_by_a_base_of_their_own_unscaled(words):
    config = parse(**words)
    assert (config.rope.theta, config.local_rope.theta) == (1e6, 1e4)
    assert (config.rope.scaling, config.local_rope.scaling) == ("linear", "default")
    assert (config.rope.inv_freq[0], config.local_rope.inv_freq[0]) == (0.125, 1.0)
    assert config.layer_rope(0) is config.local_rope
    assert config.layer_rope(5) is config.rope


def test_a_model_without_windows_turns_all_layers_alike():
    config = parse(sliding_window_pattern=1)
    assert config.sliding_window is None
    assert config.layer_rope(0) is config.rope


def test_logits_may_be_capped():
    assert parse(final_logit_softcapping=30.0).logit_cap == 30.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attn_logit_softcapping": 50.0}, "`attn_logit_softcapping` is 50.0, supported is None"),
        ({"use_bidirectional_attention": True}, "`use_bidirectional_attention` is True"),
        ({"hidden_act": "silu"}, "`hidden_act` is 'silu'"),
        ({"hidden_activation": "relu"}, "`hidden_activation` of `config.json` is `relu`"),
        ({"final_logit_softcapping": 0.0}, "`final_logit_softcapping` of `config.json` is 0.0"),
        ({"query_pre_attn_scalar": -1}, "`query_pre_attn_scalar` of `config.json` is -1"),
        ({"layer_types": ["full_attention", "recurrent"]}, "`layer_types` of `config.json`"),
        ({"rope_parameters": {"full_attention": 3}}, "`rope_parameters` of `config.json` is 3"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "spiral"}}, "rope_scaling": ...},
            "spiral",
        ),
    ],
)
def test_a_faulty_field_is_named(changes, message):
    with pytest.raises(WeightError, match=message):
        parse(**changes)


def test_as_many_kinds_as_layers():
    with pytest.raises(WeightError, match="2 layer kinds for 26 layers: expected one each"):
        require_config(parse(layer_types=["full_attention", "sliding_attention"]), "config.json")
