"""Known configs small enough to compile and run in a moment."""

import pytest

from bedstone.checkpoint import shapes

TOY = {
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 67,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000,
    "tie_word_embeddings": True,
}
RECURRENT = TOY | {
    "architectures": ["Qwen3NextForCausalLM"],
    "num_hidden_layers": 4,
    "full_attention_interval": 4,
    "partial_rotary_factor": 0.25,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 8,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "tie_word_embeddings": False,
}
LATENT = {
    **{name: value for name, value in TOY.items() if name not in {"head_dim"}},
    "architectures": ["DeepseekV2ForCausalLM"],
    "num_key_value_heads": 4,
    "q_lora_rank": None,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "tie_word_embeddings": False,
}


@pytest.fixture
def toys(monkeypatch, cache):
    """`toy`, `recurrent` and `latent` are known configs; kernels come from the session's cache."""
    known = {"toy": TOY, "recurrent": RECURRENT, "latent": LATENT}
    monkeypatch.setattr(shapes, "_read", lambda: known)
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    return cache
