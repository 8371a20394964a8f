"""Tiny random checkpoints that `transformers` writes, and a model's steps run by the oracle."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.models import step_graph
from bedstone.oracle.step import StepOracle
from bedstone.spec.dtype import FormatName

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rope_theta": 10000.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
    "tie_word_embeddings": False,
    "attn_implementation": "eager",
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "mscale": 0.7,
    "mscale_all_dim": 0.9,
}
HYBRID = {
    "num_hidden_layers": 4,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 6,
    "linear_value_head_dim": 10,
    "linear_conv_kernel_dim": 3,
}
ONE_OF_EACH = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}
LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 22,
    "q_lora_rank": 18,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
}
ROUTED = {
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 20,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
}
EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
WINDOWED = {"sliding_window": 4, "use_sliding_window": True}
GEMMA = {
    "tie_word_embeddings": True,
    "head_dim": 16,
    "num_hidden_layers": 3,
    "rope_theta": 5000.0,
    "rope_local_base_freq": 100.0,
}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-one-group": ("Llama", {"num_key_value_heads": 1}),
    "llama3-scaling": ("Llama", {"rope_scaling": LLAMA3, "rope_parameters": LLAMA3}),
    "llama-wide-heads": ("Llama", {"head_dim": 20}),
    "mistral-window": ("Mistral", {"sliding_window": 4, "head_dim": 8}),
    "mistral-odd": (
        "Mistral",
        {
            "sliding_window": None,
            "hidden_size": 37,
            "intermediate_size": 51,
            "head_dim": 14,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
        },
    ),
    "qwen2": ("Qwen2", {}),
    "qwen2-some-windows": (
        "Qwen2",
        WINDOWED
        | {
            "sliding_window": 7,
            "hidden_size": 30,
            "intermediate_size": 45,
            "num_attention_heads": 3,
            "num_key_value_heads": 3,
            "num_hidden_layers": 3,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "tie_word_embeddings": True,
        },
    ),
    "qwen3": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen3-untied": ("Qwen3", {"head_dim": 8, "attention_bias": True}),
    "qwen2-moe": (
        "Qwen2Moe",
        EXPERTS
        | WINDOWED
        | {
            "shared_expert_intermediate_size": 28,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "qwen2-moe-normed": (
        "Qwen2Moe",
        EXPERTS
        | {
            "shared_expert_intermediate_size": 12,
            "norm_topk_prob": True,
            "qkv_bias": False,
            "decoder_sparse_step": 2,
        },
    ),
    "qwen3-moe": ("Qwen3Moe", EXPERTS | {"norm_topk_prob": True, "head_dim": 16}),
    "qwen3-moe-some-layers": (
        "Qwen3Moe",
        EXPERTS
        | WINDOWED
        | {
            "num_experts": 3,
            "num_experts_per_tok": 3,
            "num_hidden_layers": 3,
            "mlp_only_layers": [1],
            "attention_bias": True,
        },
    ),
    "gemma3": ("Gemma3", GEMMA | {"sliding_window": 4, "sliding_window_pattern": 3}),
    "gemma3-capped": (
        "Gemma3",
        GEMMA
        | {
            "sliding_window": 3,
            "sliding_window_pattern": 2,
            "query_pre_attn_scalar": 20,
            "final_logit_softcapping": 5.0,
            "rope_scaling": {"rope_type": "linear", "factor": 4.0},
            "num_key_value_heads": 1,
            "hidden_size": 36,
        },
    ),
    "qwen3.5": ("Qwen3_5", HYBRID),
    "qwen3.5-wide-taps": (
        "Qwen3_5",
        HYBRID
        | ONE_OF_EACH
        | {
            "linear_num_key_heads": 3,
            "linear_num_value_heads": 3,
            "linear_conv_kernel_dim": 5,
            "attention_bias": True,
            "rope_parameters": {"rope_theta": 500.0, "partial_rotary_factor": 0.5},
        },
    ),
    "qwen3.5-moe": (
        "Qwen3_5Moe",
        HYBRID | EXPERTS | ONE_OF_EACH | {"shared_expert_intermediate_size": 28},
    ),
    "qwen3-next": ("Qwen3Next", HYBRID | EXPERTS | {"shared_expert_intermediate_size": 28}),
    "qwen3-next-some-dense": (
        "Qwen3Next",
        HYBRID
        | EXPERTS
        | ONE_OF_EACH
        | {
            "shared_expert_intermediate_size": 12,
            "norm_topk_prob": False,
            "decoder_sparse_step": 2,
            "linear_num_key_heads": 1,
            "linear_num_value_heads": 4,
            "linear_conv_kernel_dim": 2,
            "tie_word_embeddings": True,
        },
    ),
    "deepseek-v2": ("DeepseekV2", LATENT | ROUTED | {"q_lora_rank": None, "rope_theta": 500.0}),
    "deepseek-v2-groups": (
        "DeepseekV2",
        LATENT
        | ROUTED
        | {
            "topk_method": "group_limited_greedy",
            "n_group": 4,
            "topk_group": 2,
            "routed_scaling_factor": 1.7,
            "attention_bias": True,
            "rope_parameters": YARN,
        },
    ),
    "deepseek-v3": (
        "DeepseekV3",
        LATENT | ROUTED | {"n_group": 4, "topk_group": 2, "rope_parameters": YARN},
    ),
    "deepseek-v3-halves": (
        "DeepseekV3",
        LATENT
        | ROUTED
        | {
            "q_lora_rank": None,
            "first_k_dense_replace": 0,
            "n_group": 1,
            "topk_group": 1,
            "norm_topk_prob": False,
            "rope_interleave": False,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
        },
    ),
}
FAMILIES = (
    "llama-biases",
    "mistral-window",
    "qwen2",
    "qwen3",
    "qwen2-moe",
    "qwen3-moe-some-layers",
    "gemma3-capped",
    "qwen3.5",
    "qwen3.5-moe",
    "qwen3-next-some-dense",
    "deepseek-v2-groups",
    "deepseek-v3",
)
"""One of each architecture, which together have every block: for what is slow to ask of all."""

IDS = (1, 17, 42, 3, 3, 58, 9, 26, 0, 60, 11, 5)
LONG = (*IDS, *(7 * i * i % 61 for i in range(33)))
"""More than a page, many times a window or a ring."""


@dataclass
class Cached:
    """One sequence's tables and length, advanced step by step."""

    tables: dict[str, np.ndarray] = field(default_factory=dict)
    length: int = 0


@dataclass(frozen=True)
class Loaded:
    """A model as the checkpoint readers see it."""

    config: ModelConfig
    formats: Mapping[str, FormatName]
    values: Mapping[str, np.ndarray]
    capacity: int = 16
    dtype: Any = np.float64
    row_param: str | None = None

    def oracle(self, form: Any, rows: int, tables: dict[str, np.ndarray]) -> StepOracle:
        graph = step_graph(
            self.config,
            form,
            formats=self.formats,
            rows=rows,
            capacity=self.capacity,
            row_param=self.row_param if form == "chunk" else None,
        )
        return StepOracle(graph, self.values, self.dtype, tables=tables)

    def decode(self, ids: Sequence[int], cached: Cached) -> np.ndarray:
        """Logits [len(ids), vocab] of one step for each id."""
        oracle = self.oracle("decode", 1, cached.tables)
        logits = []
        for token in ids:
            cached.length += 1
            logits.append(oracle.run({"token": [token]}, {"pos": cached.length})["logits"])
        return np.concatenate(logits)

    def chunks(self, ids: Sequence[int], sizes: Sequence[int], cached: Cached) -> np.ndarray:
        """Logits [len(sizes), vocab] after each chunk."""
        logits, rest = [], iter(ids)
        for size in sizes:
            rows = size if self.row_param is None else 8
            oracle = self.oracle("chunk", rows, cached.tables)
            cached.length += size
            params = {"pos": cached.length}
            if self.row_param is not None:
                params[self.row_param] = size
            prompt = list(itertools.islice(rest, size))
            logits.append(oracle.run({"prompt": prompt}, params)["logits"])
        return np.concatenate(logits)


def load(reference: str, **changes: Any) -> Loaded:
    checkpoint = open_checkpoint(reference)
    names = checkpoint.constants
    formats = {name: checkpoint.format(name) for name in names}
    values = {name: checkpoint.values(name) for name in names}
    loaded = Loaded(checkpoint.config, formats, values, **changes)
    checkpoint.close()
    return loaded


def write_tiny(name: str, folder: Path, **saving: Any) -> transformers.PreTrainedModel:
    """A random model with norms and biases away from one and zero, saved to `folder`."""
    family, changes = MODELS[name]
    causal = getattr(transformers, f"{family}ForCausalLM")
    torch.manual_seed(sum(map(ord, name)))
    model = causal(causal.config_class(**SIZES | changes)).eval()
    routing = {k: b for k, b in model.named_buffers() if "correction_bias" in k}
    with torch.no_grad():
        for key, weight in {**dict(model.named_parameters()), **routing}.items():
            weight.normal_(1.0 if "norm" in key else 0.0, 0.25)
    model.save_pretrained(folder, **saving)
    return model
