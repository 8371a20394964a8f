"""DeepSeek V2 and V3 configs: latents, scores, experts, and what is refused."""

import math

import pytest

from bedstone.checkpoint.config import LatentConfig, MixtureConfig, ModelConfig, require_config
from bedstone.checkpoint.constants import Window, constants
from bedstone.checkpoint.hf_config import parse_hf_config
from bedstone.checkpoint.names import expected_tensors
from bedstone.errors import WeightError

YARN = {
    "beta_fast": 32,
    "beta_slow": 1,
    "factor": 40,
    "mscale": 0.707,
    "mscale_all_dim": 0.707,
    "original_max_position_embeddings": 4096,
    "type": "yarn",
}
V2_LITE = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "aux_loss_alpha": 0.001,
    "bos_token_id": 100000,
    "eos_token_id": 100001,
    "first_k_dense_replace": 1,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 10944,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "model_type": "deepseek_v2",
    "moe_intermediate_size": 1408,
    "moe_layer_freq": 1,
    "n_group": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "norm_topk_prob": False,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "pretraining_tp": 1,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-06,
    "rope_scaling": YARN,
    "rope_theta": 10000,
    "routed_scaling_factor": 1.0,
    "scoring_func": "softmax",
    "seq_aux": True,
    "tie_word_embeddings": False,
    "topk_group": 1,
    "topk_method": "greedy",
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "v_head_dim": 128,
    "vocab_size": 102400,
}
V3 = V2_LITE | {
    "architectures": ["DeepseekV3ForCausalLM"],
    "ep_size": 1,
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0},
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "vocab_size": 129280,
}


def parse(base: dict, **changes: object) -> ModelConfig:
    values = {k: v for k, v in (base | changes).items() if v is not ...}
    return parse_hf_config(values, "config.json", "m")


def test_the_lite_model_has_no_query_latent_and_chooses_greedily():
    config = parse(V2_LITE)
    assert config.latent == LatentConfig(None, 512, 128, 64, 128, 1e-6)
    assert (config.head_dim, config.rope.rot, config.rope.kind) == (192, 64, "pair")
    assert config.mixture == MixtureConfig(
        experts=64,
        chosen=6,
        intermediate=1408,
        layers=tuple(range(1, 27)),
        score="softmax",
        normalise=False,
        shared=2816,
    )


def test_the_large_model_limits_groups_and_selects_by_a_bias():
    config = parse(V3)
    assert config.latent == LatentConfig(1536, 512, 128, 64, 128, 1e-6)
    assert config.mixture == MixtureConfig(
        experts=256,
        chosen=8,
        intermediate=2048,
        layers=tuple(range(3, 61)),
        score="sigmoid",
        normalise=True,
        factor=2.5,
        bias=True,
        groups=8,
        group_k=4,
        group_best=2,
        shared=2048,
    )
    limited = parse(V2_LITE, topk_method="group_limited_greedy", n_group=8, topk_group=3).mixture
    assert (limited.groups, limited.group_k, limited.group_best) == (8, 3, 1)


def test_c04_mscale_all_dim_scales_scores_where_both_leave_rotations_alone():
    for base, weight in ((V2_LITE, 0.707), (V3, 1.0)):
        config = parse(base)
        assert config.rope.attention_factor == 1.0
        longer = 0.1 * weight * math.log(40) + 1
        assert config.attention_scale == pytest.approx(192**-0.5 * longer**2, rel=1e-15)
    short = {k: v for k, v in YARN.items() if not k.startswith("mscale")}
    without = parse(V3, rope_scaling=short)
    assert without.attention_scale == 192**-0.5
    assert without.rope.attention_factor == pytest.approx(1.3688879454, abs=1e-10)


def test_each_head_has_its_rows_of_the_up_projection():
    config = parse(V2_LITE, num_hidden_layers=1)
    name = "model.layers.0.self_attn.kv_b_proj"
    known = constants(config)
    assert expected_tensors(config)[f"{name}.weight"] == (16 * 256, 512)
    keys, values = known[f"{name}.key.weight"], known[f"{name}.value.weight"]
    assert keys.shape == values.shape == (16, 128, 512)
    assert keys.windows[3] == Window(f"{name}.weight", 3 * 256, 128)
    assert values.windows[3] == Window(f"{name}.weight", 3 * 256 + 128, 128)


def test_neighbours_turn_together_unless_the_config_says_halves():
    assert parse(V3, rope_interleave=False).rope.kind == "neox"
    assert parse(V3).rope.kind == "pair"


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (V2_LITE, {"norm_topk_prob": True}, "`norm_topk_prob` is True, supported is False or None"),
        (V2_LITE, {"topk_method": "noaux_tc"}, "`topk_method` .* is `noaux_tc`: expected `greedy`"),
        (V2_LITE, {"scoring_func": "sigmoid"}, "`scoring_func` is 'sigmoid'"),
        (V2_LITE, {"topk_method": "group_limited_greedy", "n_group": None}, "lacks .* `n_group`"),
        (V2_LITE, {"rope_interleave": False}, "`rope_interleave` is False, supported is True"),
        (V3, {"topk_method": "greedy"}, "`topk_method` is 'greedy'"),
        (V3, {"moe_layer_freq": 2}, "`moe_layer_freq` is 2, supported is 1"),
        (V3, {"index_topk": 2048}, "`index_topk` is not known"),
        (V3, {"qk_rope_head_dim": 0}, "`qk_rope_head_dim` .* is 0"),
    ],
)
def test_what_a_step_would_get_wrong_is_refused(base, changes, message):
    with pytest.raises(WeightError, match=message):
        parse(base, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_key_value_heads": 8}, "8 key-value heads of one latent: expected 128"),
        ({"partial_rotary_factor": 0.5}, "rotary width 32: expected the rotated part's, 64"),
        ({"n_group": 7}, "256 experts in 7 groups"),
        ({"topk_group": 9}, "9 groups kept: expected 8 at most"),
        ({"num_experts_per_tok": 200}, "200 experts chosen: expected 128 at most"),
        ({"n_group": 256, "topk_group": 8}, "2 experts judge a group of 1"),
    ],
)
def test_sizes_must_fit_each_other(changes, message):
    with pytest.raises(WeightError, match=message):
        require_config(parse(V3, **changes), "config.json")
