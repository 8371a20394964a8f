"""Small models of every family, all of whose products can be quantized."""

import dataclasses
from typing import Any

from bedstone.checkpoint.config import (
    LatentConfig,
    MixtureConfig,
    ModelConfig,
    RecurrentConfig,
    RopeConfig,
)
from lane_graphs import config


def rope(kind: Any, rot: int, theta: float = 1e4) -> RopeConfig:
    freqs = tuple(theta ** (-2 * i / rot) for i in range(rot // 2))
    return RopeConfig(kind, rot, theta, "default", freqs)


def experts(**changes: Any) -> MixtureConfig:
    """Four experts of which each row takes two, in every layer."""
    sizes: dict[str, Any] = {
        "experts": 4, "chosen": 2, "intermediate": 32, "layers": (0, 1), "score": "softmax",
        "normalise": True,
    }  # fmt: skip
    return MixtureConfig(**sizes | changes)


def recurrent(*, packed: bool) -> RecurrentConfig:
    return RecurrentConfig(
        key_heads=2, value_heads=4, key_dim=8, value_dim=16, kernel=3, packed=packed
    )


HYBRID = {
    "head_dim": 16, "rope": rope("neox", 8), "layer_kinds": ("recurrent", "full"), "qk_norm": True,
    "norm_plus_one": True, "attention_gate": True,
}  # fmt: skip
LATENT = {"kv_heads": 4, "head_dim": 48, "rope": rope("pair", 16), "attention_scale": 48**-0.5}

ZOO: dict[str, ModelConfig] = {
    "qwen3": config("Qwen3ForCausalLM"),
    "biased": config(
        "LlamaForCausalLM",
        attention_bias=True, mlp_bias=True, sliding_window=4, activation="gelu_tanh",
    ),
    "qwen2-moe": config(
        "Qwen2MoeForCausalLM",
        attention_bias=True, mixture=experts(normalise=False, shared=64, shared_gate=True),
    ),
    "qwen3-moe": config("Qwen3MoeForCausalLM", qk_norm=True, mixture=experts(layers=(1,))),
    "gemma3": config(
        "Gemma3ForCausalLM",
        qk_norm=True, norm_plus_one=True, sandwich_norms=True, activation="gelu_tanh",
        sliding_window=4, layer_kinds=("sliding", "full"), local_rope=rope("neox", 16, 1e3),
        logit_cap=30.0,
    ),
    "qwen3-next": config(
        "Qwen3NextForCausalLM",
        recurrent=recurrent(packed=True), mixture=experts(shared=32, shared_gate=True), **HYBRID,
    ),
    "qwen3.5": config("Qwen3_5ForCausalLM", recurrent=recurrent(packed=False), **HYBRID),
    "deepseek-v2": config(
        "DeepseekV2ForCausalLM",
        latent=LatentConfig(None, 32, 32, 16, 32, 1e-6),
        mixture=experts(layers=(1,), normalise=False, factor=2.0, shared=32),
        **LATENT,
    ),
    "deepseek-v3": config(
        "DeepseekV3ForCausalLM",
        latent=LatentConfig(32, 32, 32, 16, 32, 1e-6),
        mixture=experts(
            experts=8, score="sigmoid", bias=True, groups=4, group_k=2, group_best=2, shared=32,
        ),
        **LATENT,
    ),
}  # fmt: skip


def shallow(model: ModelConfig) -> ModelConfig:
    """One layer of the model, or two where its layers differ."""
    if model.layer_kinds:
        return model
    mixture = model.mixture
    if mixture is not None:
        mixture = dataclasses.replace(mixture, layers=(0,))
    return dataclasses.replace(model, layers=1, mixture=mixture)


SHALLOW = {name: shallow(model) for name, model in ZOO.items()}
