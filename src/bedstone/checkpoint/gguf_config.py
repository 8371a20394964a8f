"""GGUF metadata to one `ModelConfig`.

GGUF has no flags for biases or a tied output: which tensors the file holds decides. The `llama`
architecture stores query and key rows reordered so that neighbouring values turn together (`pair`);
`qwen2` and `qwen3` turn halves (`neox`).
"""

from collections.abc import Collection, Mapping
from typing import Literal

from bedstone.checkpoint.config import LAYER_LIMIT, MixtureConfig, ModelConfig, RopeConfig
from bedstone.checkpoint.fields import FieldRules, Fields, require_fields
from bedstone.checkpoint.rope import (
    Linear,
    Scaling,
    Unscaled,
    Yarn,
    rope_config,
    yarn_attention_factor,
)
from bedstone.errors import WeightError
from bedstone.spec.frozen import Frozen

ROPE_FACTORS = "rope_freqs.weight"
"""A tensor [rot/2] that divides the frequencies: how llama3 scaling comes in a GGUF file."""


class GgufFamily(Frozen):
    """What an architecture of GGUF files is here.

    Files of a `mixture` do not say whether the weights of a row's experts are made to sum to one,
    nor that there is a network all rows take: the architecture does.
    """

    architecture: str
    rope: Literal["neox", "pair"]
    qk_norm: bool = False
    mixture: Literal["none", "plain", "shared"] = "none"


FAMILIES = {
    "llama": GgufFamily("LlamaForCausalLM", "pair"),
    "qwen2": GgufFamily("Qwen2ForCausalLM", "neox"),
    "qwen3": GgufFamily("Qwen3ForCausalLM", "neox", qk_norm=True),
    "qwen2moe": GgufFamily("Qwen2MoeForCausalLM", "neox", mixture="shared"),
    "qwen3moe": GgufFamily("Qwen3MoeForCausalLM", "neox", qk_norm=True, mixture="plain"),
}

RULES = FieldRules(
    used=frozenset(
        {
            "attention.head_count",
            "attention.head_count_kv",
            "attention.key_length",
            "attention.layer_norm_rms_epsilon",
            "attention.value_length",
            "block_count",
            "context_length",
            "embedding_length",
            "feed_forward_length",
            "rope.dimension_count",
            "rope.freq_base",
            "rope.scale_linear",
            "rope.scaling.attn_factor",
            "rope.scaling.factor",
            "rope.scaling.original_context_length",
            "rope.scaling.type",
            "vocab_size",
        }
    ),
    inert={"rope.scaling.finetuned": "says how the weights came about, not what they compute"},
    fixed={
        "attention.causal": (True,),
        "use_parallel_residual": (False,),
    },
)
"""Fields below the architecture's own prefix."""

EXPERTS = FieldRules(frozenset({"expert_count", "expert_feed_forward_length", "expert_used_count"}))
SHARED = FieldRules(frozenset({"expert_shared_feed_forward_length"}))
NO_EXPERTS = FieldRules(frozenset(), fixed={"expert_count": (0,), "expert_used_count": (0,)})
MIXTURES = {"none": NO_EXPERTS, "plain": EXPERTS, "shared": EXPERTS | SHARED}
"""Fields of each kind of mixture."""

FREE_PREFIXES = ("general.", "tokenizer.")
"""Metadata that describes the file or belongs to the tokenizer, which reads it on its own."""


def parse_gguf_config(
    metadata: Mapping[str, object], tensors: Collection[str], where: str, name: str
) -> ModelConfig:
    """Read a model's sizes out of the metadata of the file `where`.

    `tensors` are the names of all its tensors; `name` serves where the file gives itself none.

    Raises `WeightError` where the architecture or a field is not known, a field is missing or out
    of range.
    """
    arch = Fields(metadata, where).text("general.architecture")
    family = FAMILIES.get(arch)
    if family is None:
        raise WeightError(
            f"`{where}` has architecture `{arch}`, which is not known: expected one of "
            + ", ".join(f"`{known}`" for known in FAMILIES)
        )
    own = _own_fields(metadata, arch, RULES | MIXTURES[family.mixture], where)
    heads, hidden = own.size("attention.head_count"), own.size("embedding_length")
    head_dim = _head_dim(own, hidden, heads)
    general = Fields(metadata, where)
    return ModelConfig(
        architecture=family.architecture,
        name=general.text("general.name", name),
        vocab=_vocab(metadata, own),
        hidden=hidden,
        layers=own.size("block_count"),
        heads=heads,
        kv_heads=own.size("attention.head_count_kv", heads),
        head_dim=head_dim,
        intermediate=own.size("feed_forward_length"),
        context=own.size("context_length"),
        norm_eps=own.real("attention.layer_norm_rms_epsilon"),
        rope=_rope(own, family, head_dim),
        activation="silu",
        tie_embeddings="output.weight" not in tensors,
        attention_bias="blk.0.attn_q.bias" in tensors,
        attention_out_bias="blk.0.attn_output.bias" in tensors,
        mlp_bias="blk.0.ffn_down.bias" in tensors,
        qk_norm=family.qk_norm,
        attention_scale=head_dim**-0.5,
        sliding_window=None,
        bos=general.index("tokenizer.ggml.bos_token_id"),
        eos=_ends(general),
        mixture=_mixture(own, family),
    )


def _own_fields(metadata: Mapping[str, object], arch: str, rules: FieldRules, where: str) -> Fields:
    """The fields below `arch.`, once it is clear that every key of the file is known."""
    prefix = arch + "."
    own = {k.removeprefix(prefix): v for k, v in metadata.items() if k.startswith(prefix)}
    strays = {
        key: value
        for key, value in metadata.items()
        if not key.startswith((prefix, *FREE_PREFIXES))
    }
    split = {"split.no": (0,), "split.count": (0, 1)}
    require_fields(strays, FieldRules(frozenset({"split.tensors.count"}), {}, split), where)
    require_fields(own, rules, f"{where}: {arch}")
    return Fields(own, f"{where}: {arch}")


def _mixture(own: Fields, family: GgufFamily) -> MixtureConfig | None:
    """The experts of every layer, stacked."""
    if family.mixture == "none":
        return None
    shared = family.mixture == "shared"
    return MixtureConfig(
        experts=own.size("expert_count"),
        chosen=own.size("expert_used_count"),
        intermediate=own.size("expert_feed_forward_length"),
        layers=tuple(range(min(own.size("block_count"), LAYER_LIMIT + 1))),
        score="softmax",
        normalise=not shared,
        shared=own.size("expert_shared_feed_forward_length") if shared else 0,
        shared_gate=shared,
        layout="stacked",
    )


def _head_dim(own: Fields, hidden: int, heads: int) -> int:
    if not own.has("attention.key_length") and hidden % heads:
        raise WeightError(
            f"`{own.where}` has {hidden} values for {heads} heads and no `attention.key_length`"
        )
    head_dim = own.size("attention.key_length", max(hidden // heads, 1))
    value_dim = own.size("attention.value_length", head_dim)
    if value_dim != head_dim:
        raise WeightError(
            f"field `attention.value_length` of `{own.where}` is {value_dim}, "
            f"supported is the key length, {head_dim}"
        )
    return head_dim


def _vocab(metadata: Mapping[str, object], own: Fields) -> int:
    tokens = getattr(metadata.get("tokenizer.ggml.tokens"), "count", None)
    return own.size("vocab_size", tokens)


def _ends(general: Fields) -> tuple[int, ...]:
    keys = ("eos", "eot", "eom")
    ids = (general.index(f"tokenizer.ggml.{key}_token_id") for key in keys)
    return tuple(dict.fromkeys(i for i in ids if i is not None))


def _rope(own: Fields, family: GgufFamily, head_dim: int) -> RopeConfig:
    rot = own.size("rope.dimension_count", head_dim)
    theta = own.real("rope.freq_base", 10000.0)
    return rope_config(family.rope, rot, theta, _scaling(own))


def _scaling(own: Fields) -> Scaling:
    kind = own.text("rope.scaling.type", "linear" if own.has("rope.scale_linear") else "none")
    match kind:
        case "none":
            return Unscaled()
        case "linear":
            return Linear(own.real("rope.scaling.factor", own.real("rope.scale_linear", 1.0)))
        case "yarn":
            factor = own.real("rope.scaling.factor")
            attention = own.real("rope.scaling.attn_factor", 1.0) * yarn_attention_factor(factor)
            context = own.size("context_length")
            original = own.size("rope.scaling.original_context_length", context)
            return Yarn(factor, original, attention)
        case _:
            raise WeightError(
                f"field `rope.scaling.type` of `{own.where}` is `{kind}`: "
                "expected `none`, `linear` or `yarn`"
            )
