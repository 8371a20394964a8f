"""The fields of a Hugging Face `config.json`, family by family.

Each family states every field it knows: used, inert with the reason, or supported at certain
values only. A field outside these tables is refused by name, since it might change what the model
computes.
"""

from dataclasses import dataclass
from typing import Literal

from bedstone.checkpoint import hf_deepseek, hf_gemma, hf_hybrid, hf_mixture, hf_windows
from bedstone.checkpoint.fields import FieldRules
from bedstone.checkpoint.hf_windows import WindowRule

SCALAR = "describes how the model was trained or is driven, not what a step computes"
OUTPUT = "selects outputs of the Python class"
FILE = "describes the files, which say the same themselves"
SAMPLING = "a default of text generation, read elsewhere or not at all"

COMMON = FieldRules(
    used=frozenset(
        {
            "architectures", "bos_token_id", "eos_token_id", "head_dim", "hidden_act",
            "hidden_size", "intermediate_size", "max_position_embeddings", "model_type",
            "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
            "original_max_position_embeddings", "partial_rotary_factor", "quantization_config",
            "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta",
            "tie_word_embeddings", "vocab_size",
        }
    ),
    inert={
        **dict.fromkeys(
            (
                "attention_dropout", "hidden_dropout", "initializer_range", "use_cache",
                "cache_implementation", "gradient_checkpointing", "pretraining_tp",
                "tokenizer_class", "tie_encoder_decoder", "_attn_implementation_autoset",
                "is_decoder", "task_specific_params", "finetuning_task", "problem_type", "prefix",
            ),
            SCALAR,
        ),
        **dict.fromkeys(
            (
                "output_attentions", "output_hidden_states", "return_dict", "id2label", "label2id",
                "chunk_size_feed_forward", "torchscript", "use_bfloat16", "return_dict_in_generate",
            ),
            OUTPUT,
        ),
        **dict.fromkeys(
            (
                "_name_or_path", "transformers_version", "torch_dtype", "dtype", "auto_map",
                "transformers.js_config", "unsloth_fixed", "unsloth_version",
            ),
            FILE,
        ),
        **dict.fromkeys(
            (
                "pad_token_id", "sep_token_id", "decoder_start_token_id", "do_sample",
                "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
                "length_penalty", "max_length", "min_length", "num_beams",
                "num_return_sequences", "no_repeat_ngram_size", "early_stopping",
            ),
            SAMPLING,
        ),
    },
    fixed={
        "is_encoder_decoder": (False,),
        "add_cross_attention": (False,),
        "cross_attention_hidden_size": (None,),
        "pruned_heads": ({},),
        "rope_interleaved": (False,),
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """What one architecture adds to the common fields.

    `qkv_bias` says whether the query, key and value products have a bias: by the config's
    `attention_bias`, which then holds for the output product too, by a field of its own, or always.
    A family with `recurrent` layers is a hybrid; the word says how its checkpoints hold their
    projections. `mixture` names the defaults of a family with experts, `gemma` that a config's
    scores, rotations and caps are said as Gemma's are.
    """

    model_type: str
    rules: FieldRules
    qkv_bias: Literal["config", "own", "always", "never"] = "config"
    mlp_bias: bool = False
    qk_norm: bool = False
    window: WindowRule = "none"
    recurrent: Literal["none", "packed", "split"] = "none"
    latent: bool = False
    mixture: str | None = None
    gemma: bool = False


FAMILIES = {
    "LlamaForCausalLM": Family(
        "llama",
        COMMON
        | FieldRules(
            frozenset({"attention_bias", "mlp_bias"}),
            inert={"is_llama_config": FILE, "eos_token": FILE},
            fixed={"sliding_window": (None,)},
        ),
        mlp_bias=True,
    ),
    "MistralForCausalLM": Family(
        "mistral",
        COMMON
        | FieldRules(
            frozenset({"sliding_window"}), fixed={"attention_bias": (False,), "mlp_bias": (False,)}
        ),
        qkv_bias="never",
        window="all",
    ),
    "Qwen2ForCausalLM": Family(
        "qwen2",
        COMMON | hf_windows.RULES | FieldRules(frozenset(), fixed={"use_mrope": (False,)}),
        qkv_bias="always",
        window="late",
    ),
    "Qwen3ForCausalLM": Family(
        "qwen3",
        COMMON | hf_windows.RULES | FieldRules(frozenset({"attention_bias"})),
        qk_norm=True,
        window="late",
    ),
    "Qwen2MoeForCausalLM": Family(
        "qwen2_moe",
        COMMON
        | hf_windows.RULES
        | hf_mixture.RULES
        | FieldRules(frozenset({"qkv_bias", hf_mixture.SHARED})),
        qkv_bias="own",
        window="alternate",
        mixture="qwen2",
    ),
    "Qwen3MoeForCausalLM": Family(
        "qwen3_moe",
        COMMON
        | hf_mixture.RULES
        | FieldRules(
            frozenset({"attention_bias", "sliding_window", "use_sliding_window"}),
            inert={"max_window_layers": "windows are on in all layers or in none"},
        ),
        qk_norm=True,
        window="switch",
        mixture="qwen3",
    ),
    "Gemma3ForCausalLM": Family(
        "gemma3_text", COMMON | hf_gemma.RULES, qk_norm=True, window="pattern", gemma=True
    ),
    "Qwen3_5ForCausalLM": Family(
        "qwen3_5_text",
        COMMON | hf_hybrid.RULES,
        qk_norm=True,
        recurrent="split",
    ),
    "Qwen3_5MoeForCausalLM": Family(
        "qwen3_5_moe_text",
        COMMON
        | hf_hybrid.RULES
        | hf_mixture.RULES
        | FieldRules(
            frozenset({hf_mixture.SHARED}),
            fixed={
                "decoder_sparse_step": (1,),
                "mlp_only_layers": ([],),
                "norm_topk_prob": (True,),
            },
        ),
        qk_norm=True,
        recurrent="split",
        mixture="qwen3_5",
    ),
    "Qwen3NextForCausalLM": Family(
        "qwen3_next",
        COMMON | hf_hybrid.RULES | hf_mixture.RULES | FieldRules(frozenset({hf_mixture.SHARED})),
        qk_norm=True,
        recurrent="packed",
        mixture="qwen3_next",
    ),
    "DeepseekV2ForCausalLM": Family("deepseek_v2", COMMON | hf_deepseek.V2_RULES, latent=True),
    "DeepseekV3ForCausalLM": Family("deepseek_v3", COMMON | hf_deepseek.V3_RULES, latent=True),
}
