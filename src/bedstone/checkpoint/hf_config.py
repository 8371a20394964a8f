"""A Hugging Face `config.json` to one `ModelConfig`.

Which fields a family may have is said in `hf_families`. Defaults of absent fields are those of
`transformers`, except that `head_dim` always falls back to hidden / heads: should a family mean
another width, the tensors' shapes stop the load.
"""

from collections.abc import Mapping
from typing import Literal

from bedstone.checkpoint import hf_deepseek, hf_gemma, hf_hybrid, hf_mixture
from bedstone.checkpoint.config import LatentConfig, MixtureConfig, ModelConfig, RopeConfig
from bedstone.checkpoint.fields import Fields, require_fields
from bedstone.checkpoint.hf_families import FAMILIES, Family
from bedstone.checkpoint.hf_rope import parse_rope, parse_score_factor
from bedstone.checkpoint.hf_windows import parse_windows
from bedstone.errors import WeightError

ACTIVATIONS: Mapping[str, Literal["silu", "gelu_tanh"]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}


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
    latent = hf_deepseek.parse_latent(fields) if family.latent else None
    head_dim = latent.own + latent.turned if latent else _head_dim(fields, hidden, heads)
    hybrid = family.recurrent != "none"
    window, kinds = (None, ()) if hybrid else parse_windows(fields, family.window)
    mixture = _mixture(fields, family)
    rope, local_rope = _ropes(fields, family, head_dim, latent)
    qkv_bias, out_bias = _attention_biases(fields, family)
    return ModelConfig(
        architecture=architecture,
        name=name,
        vocab=fields.size("vocab_size"),
        hidden=hidden,
        layers=fields.size("num_hidden_layers"),
        heads=heads,
        kv_heads=fields.size("num_key_value_heads", heads),
        head_dim=head_dim,
        intermediate=_intermediate(fields, mixture),
        context=fields.size("max_position_embeddings"),
        norm_eps=fields.real("rms_norm_eps", 1e-6),
        rope=rope,
        activation=_activation(fields, family),
        tie_embeddings=fields.flag("tie_word_embeddings", default=family.gemma),
        attention_bias=qkv_bias,
        attention_out_bias=out_bias,
        mlp_bias=family.mlp_bias and fields.flag("mlp_bias", default=False),
        qk_norm=family.qk_norm,
        attention_scale=_score_scale(fields, family, head_dim),
        sliding_window=window,
        bos=fields.index("bos_token_id"),
        eos=_ends(fields, Fields(stops or {}, "generation_config.json")),
        layer_kinds=hf_hybrid.parse_layer_kinds(fields) if hybrid else kinds,
        norm_plus_one=hybrid or family.gemma,
        attention_gate=hybrid,
        recurrent=hf_hybrid.parse_recurrent(fields, family.recurrent),
        latent=latent,
        mixture=mixture,
        local_rope=local_rope,
        sandwich_norms=family.gemma,
        logit_cap=hf_gemma.parse_logit_cap(fields) if family.gemma else None,
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


def _intermediate(fields: Fields, mixture: MixtureConfig | None) -> int:
    """The width of dense feed-forward blocks; where every layer has experts it may be absent."""
    sparse = mixture is not None and len(mixture.layers) == fields.size("num_hidden_layers")
    return fields.size("intermediate_size", mixture.intermediate if mixture and sparse else None)


def _attention_biases(fields: Fields, family: Family) -> tuple[bool, bool]:
    """Whether queries, keys and values have a bias, and whether the output has one."""
    if family.qkv_bias == "config":
        both = fields.flag("attention_bias", default=False)
        return both, both
    own = family.qkv_bias == "own" and fields.flag("qkv_bias", default=True)
    return own or family.qkv_bias == "always", False


def _score_scale(fields: Fields, family: Family, head_dim: int) -> float:
    """What multiplies attention scores."""
    if family.gemma:
        return hf_gemma.parse_score_scale(fields)
    factor = parse_score_factor(fields) if family.latent else 1.0
    return float(head_dim**-0.5) * factor


def _mixture(fields: Fields, family: Family) -> MixtureConfig | None:
    if family.latent:
        return hf_deepseek.parse_mixture(fields, hf_deepseek.VERSIONS[family.model_type])
    if family.mixture is None:
        return None
    return hf_mixture.parse_mixture(fields, hf_mixture.DEFAULTS[family.mixture])


def _ropes(
    fields: Fields, family: Family, head_dim: int, latent: LatentConfig | None
) -> tuple[RopeConfig, RopeConfig | None]:
    """The rotation of a head, and that of sliding layers where they have their own."""
    if family.gemma:
        return hf_gemma.parse_ropes(fields, head_dim)
    return _rope(fields, family, head_dim, latent), None


def _rope(fields: Fields, family: Family, head_dim: int, latent: LatentConfig | None) -> RopeConfig:
    """The rotation of a head, or of that part of it which turns."""
    if latent is not None:
        pairs = fields.flag("rope_interleave", default=True)
        return parse_rope(fields, latent.turned, kind="pair" if pairs else "neox")
    if family.recurrent != "none":
        return parse_rope(fields, head_dim, share=hf_hybrid.SHARE, inert=hf_hybrid.AXES)
    return parse_rope(fields, head_dim)


def _activation(fields: Fields, family: Family) -> Literal["silu", "gelu_tanh"]:
    field, default = ("hidden_act", "silu")
    if family.gemma:
        field, default = ("hidden_activation", "gelu_pytorch_tanh")
    name = fields.text(field, default)
    if name not in ACTIVATIONS:
        raise WeightError(
            f"field `{field}` of `{fields.where}` is `{name}`: expected one of "
            + ", ".join(f"`{known}`" for known in ACTIVATIONS)
        )
    return ACTIVATIONS[name]


def _ends(config: Fields, generation: Fields) -> tuple[int, ...]:
    """Token ids that end a text, each once."""
    return tuple(dict.fromkeys((*generation.ids("eos_token_id"), *config.ids("eos_token_id"))))
