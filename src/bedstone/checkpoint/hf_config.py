"""A Hugging Face `config.json` to one `ModelConfig`.

Each family states every field it knows: used, inert with the reason, or supported at certain
values only. A field outside these tables is refused by name, since it might change what the model
computes. Defaults of absent fields are those of `transformers`, except that `head_dim` always falls
back to hidden / heads: should a family mean another width, the tensors' shapes stop the load.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.fields import FieldRules, Fields, require_fields
from bedstone.checkpoint.hf_rope import parse_rope
from bedstone.errors import WeightError

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

WINDOWED_LAYERS = FieldRules(
    frozenset({"layer_types", "max_window_layers", "sliding_window", "use_sliding_window"})
)


@dataclass(frozen=True, slots=True)
class Family:
    """What one architecture adds to the common fields.

    `qkv_bias` says whether the query, key and value products have a bias: by the config's
    `attention_bias`, which then holds for the output product too, or always.
    """

    model_type: str
    rules: FieldRules
    qkv_bias: Literal["config", "always", "never"] = "config"
    mlp_bias: bool = False
    qk_norm: bool = False
    window: Literal["none", "all", "layers"] = "none"


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
        COMMON | WINDOWED_LAYERS | FieldRules(frozenset(), fixed={"use_mrope": (False,)}),
        qkv_bias="always",
        window="layers",
    ),
    "Qwen3ForCausalLM": Family(
        "qwen3",
        COMMON | WINDOWED_LAYERS | FieldRules(frozenset({"attention_bias"})),
        qk_norm=True,
        window="layers",
    ),
}

ACTIVATIONS: Mapping[str, Literal["silu", "gelu_tanh"]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}

MISTRAL_WINDOW = 4096
"""The window of a Mistral config that does not name one; null is none."""


def parse_hf_config(
    values: Mapping[str, object], where: str, name: str, stops: Mapping[str, object] | None = None
) -> ModelConfig:
    """Read a model's sizes out of the config `where`.

    `stops` is the directory's `generation_config.json`, whose end tokens come first.

    Raises `WeightError` where the architecture or a field is not known, a field is missing or out
    of range.
    """
    fields = Fields(values, where)
    architecture = _architecture(fields)
    family = FAMILIES[architecture]
    require_fields(values, family.rules, where)
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    head_dim = _head_dim(fields, hidden, heads)
    attention_bias = family.qkv_bias == "config" and fields.flag("attention_bias", default=False)
    return ModelConfig(
        architecture=architecture,
        name=name,
        vocab=fields.size("vocab_size"),
        hidden=hidden,
        layers=fields.size("num_hidden_layers"),
        heads=heads,
        kv_heads=fields.size("num_key_value_heads", heads),
        head_dim=head_dim,
        intermediate=fields.size("intermediate_size"),
        context=fields.size("max_position_embeddings"),
        norm_eps=fields.real("rms_norm_eps", 1e-6),
        rope=parse_rope(fields, head_dim),
        activation=_activation(fields),
        tie_embeddings=fields.flag("tie_word_embeddings", default=False),
        attention_bias=attention_bias or family.qkv_bias == "always",
        attention_out_bias=attention_bias,
        mlp_bias=family.mlp_bias and fields.flag("mlp_bias", default=False),
        qk_norm=family.qk_norm,
        attention_scale=head_dim**-0.5,
        sliding_window=_window(fields, family),
        bos=fields.index("bos_token_id"),
        eos=_ends(fields, Fields(stops or {}, "generation_config.json")),
    )


def _architecture(fields: Fields) -> str:
    """The one known architecture the config names, or the one its model type stands for."""
    named = fields.values.get("architectures")
    if isinstance(named, list) and len(named) == 1 and isinstance(named[0], str):
        if named[0] in FAMILIES:
            return named[0]
        found = f"architecture `{named[0]}`"
    elif named is None:
        model_type = fields.text("model_type")
        for architecture, family in FAMILIES.items():
            if family.model_type == model_type:
                return architecture
        found = f"model type `{model_type}`"
    else:
        found = f"architectures {named!r}"
    known = ", ".join(f"`{architecture}`" for architecture in FAMILIES)
    raise WeightError(f"`{fields.where}` has {found}, which is not known: expected one of {known}")


def quant_method(values: Mapping[str, object], where: str) -> str | None:
    """How the checkpoint's weights were quantized by the tool that wrote it, if they were."""
    quantization = Fields(values, where).table("quantization_config")
    return None if quantization is None else quantization.text("quant_method", "unnamed")


def _head_dim(fields: Fields, hidden: int, heads: int) -> int:
    if fields.has("head_dim"):
        return fields.size("head_dim")
    if hidden % heads:
        raise WeightError(
            f"`{fields.where}` has hidden_size {hidden} and {heads} heads, expected a multiple "
            "or a `head_dim`"
        )
    return hidden // heads


def _activation(fields: Fields) -> Literal["silu", "gelu_tanh"]:
    name = fields.text("hidden_act", "silu")
    if name not in ACTIVATIONS:
        raise WeightError(
            f"field `hidden_act` of `{fields.where}` is `{name}`: expected one of "
            + ", ".join(f"`{known}`" for known in ACTIVATIONS)
        )
    return ACTIVATIONS[name]


def _window(fields: Fields, family: Family) -> int | None:
    """The one window of all layers, where they have one."""
    if family.window == "all":
        absent = "sliding_window" not in fields.values
        return MISTRAL_WINDOW if absent else fields.optional_size("sliding_window")
    if family.window == "none" or not fields.flag("use_sliding_window", default=False):
        _require_layers(fields, "full_attention")
        return None
    window = fields.optional_size("sliding_window") if "sliding_window" in fields.values else 4096
    if window is None:
        _require_layers(fields, "full_attention")
        return None
    layers = fields.size("num_hidden_layers")
    full = fields.values.get("max_window_layers", 28)
    if not fields.has("layer_types"):
        if full == 0:
            return window
        if isinstance(full, int) and full >= layers:
            return None
        raise WeightError(
            f"field `max_window_layers` of `{fields.where}` is {full!r}: a window on some of the "
            f"{layers} layers is not supported"
        )
    _require_layers(fields, "sliding_attention")
    return window


def _require_layers(fields: Fields, kind: str) -> None:
    """Refuse layers of more than one kind."""
    kinds = fields.values.get("layer_types")
    if kinds is None:
        return
    if kinds != [kind] * fields.size("num_hidden_layers"):
        shown = sorted({str(k) for k in kinds}) if isinstance(kinds, list) else kinds
        raise WeightError(
            f"field `layer_types` of `{fields.where}` is {shown!r}, supported is `{kind}` for "
            "each layer"
        )


def _ends(config: Fields, generation: Fields) -> tuple[int, ...]:
    """Token ids that end a text, each once."""
    return tuple(dict.fromkeys((*generation.ids("eos_token_id"), *config.ids("eos_token_id"))))
