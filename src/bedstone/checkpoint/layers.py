"""The tensors of a layer, block by block: names below `model.layers.N.`, shapes outermost first."""

from collections.abc import Mapping

from bedstone.checkpoint.config import LatentConfig, MixtureConfig, ModelConfig, RecurrentConfig

Shapes = Mapping[str, tuple[int, ...]]

TAPS = "linear_attn.conv1d.weight"
"""The taps [channels, 1, k] of a causal convolution: those of queries, keys, values in turn."""

UP = "self_attn.kv_b_proj.weight"
"""From the latent to keys and values [heads * (own + value_dim), kv_rank], head by head."""


EXPERTS = "mlp.experts"
"""What the experts of a layer stand below."""


def layer_tensors(config: ModelConfig, layer: int) -> Shapes:
    """Every tensor of a layer."""
    norms = ["input_layernorm", "post_attention_layernorm"]
    if config.sandwich_norms:
        norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    return {
        **{f"{norm}.weight": (config.hidden,) for norm in norms},
        **mixer_tensors(config, layer),
        **feed_forward_tensors(config, layer),
    }


def mixer_tensors(config: ModelConfig, layer: int) -> Shapes:
    """The tensors of the block that reads other rows."""
    if config.recurrent is not None and config.layer_kinds[layer] == "recurrent":
        return recurrent_tensors(config, config.recurrent)
    if config.latent is not None:
        return latent_tensors(config, config.latent)
    return attention_tensors(config)


def attention_tensors(config: ModelConfig) -> Shapes:
    """Queries (each with its gate where there are gates), keys, values, output and head norms."""
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    hidden, bias, out_bias = config.hidden, config.attention_bias, config.attention_out_bias
    norms = ("q_norm", "k_norm") if config.qk_norm else ()
    return {
        **_matrix("self_attn.q_proj", q * (2 if config.attention_gate else 1), hidden, bias=bias),
        **_matrix("self_attn.k_proj", kv, hidden, bias=bias),
        **_matrix("self_attn.v_proj", kv, hidden, bias=bias),
        **_matrix("self_attn.o_proj", hidden, q, bias=out_bias),
        **{f"self_attn.{norm}.weight": (config.head_dim,) for norm in norms},
    }


def latent_tensors(config: ModelConfig, latent: LatentConfig) -> Shapes:
    """Down to the latents, their norms, up from them, and the output."""
    heads, hidden, rank = config.heads, config.hidden, latent.query_rank
    q, down, up = (
        heads * (latent.own + latent.turned),
        latent.kv_rank,
        latent.own + latent.value_dim,
    )
    bias, out_bias = config.attention_bias, config.attention_out_bias
    if rank is None:
        queries = _matrix("self_attn.q_proj", q, hidden)
    else:
        queries = {
            **_matrix("self_attn.q_a_proj", rank, hidden, bias=bias),
            "self_attn.q_a_layernorm.weight": (rank,),
            **_matrix("self_attn.q_b_proj", q, rank),
        }
    return {
        **queries,
        **_matrix("self_attn.kv_a_proj_with_mqa", down + latent.turned, hidden, bias=bias),
        "self_attn.kv_a_layernorm.weight": (down,),
        UP: (heads * up, down),
        **_matrix("self_attn.o_proj", hidden, heads * latent.value_dim, bias=out_bias),
    }


def recurrent_tensors(config: ModelConfig, recurrent: RecurrentConfig) -> Shapes:
    """The projections, the convolution's taps, the decay's vectors, the gated norm, the output."""
    hidden, heads = config.hidden, recurrent.value_heads
    wide, channels = recurrent.value_width, 2 * recurrent.key_width + recurrent.value_width
    if recurrent.packed:
        widths = {"qkvz": channels + wide, "ba": 2 * heads}
    else:
        widths = {"qkv": channels, "z": wide, "b": heads, "a": heads}
    return {
        **{f"linear_attn.in_proj_{part}.weight": (n, hidden) for part, n in widths.items()},
        TAPS: (channels, 1, recurrent.kernel),
        "linear_attn.dt_bias": (heads,),
        "linear_attn.A_log": (heads,),
        "linear_attn.norm.weight": (recurrent.value_dim,),
        "linear_attn.out_proj.weight": (hidden, wide),
    }


def feed_forward_tensors(config: ModelConfig, layer: int) -> Shapes:
    """The gated feed-forward block, or the mixture of experts that stands for it."""
    mixture = config.mixture
    if mixture is not None and layer in mixture.layers:
        return mixture_tensors(config, mixture)
    return _gated("mlp", config.hidden, config.intermediate, bias=config.mlp_bias)


def mixture_tensors(config: ModelConfig, mixture: MixtureConfig) -> Shapes:
    """The router, with its bias where it has one, the experts, and the network all rows take."""
    hidden, experts = config.hidden, mixture.experts
    bias = {"mlp.gate.e_score_correction_bias": (experts,)} if mixture.bias else {}
    shared = shared_name(mixture)
    gate = _matrix(f"{shared}_gate", 1, hidden) if mixture.shared_gate else {}
    return {
        **_matrix("mlp.gate", experts, hidden),
        **bias,
        **expert_tensors(hidden, mixture),
        **(_gated(shared, hidden, mixture.shared) if mixture.shared else {}),
        **gate,
    }


def shared_name(mixture: MixtureConfig) -> str:
    """What the network all rows take is called: the one with a gate is a single expert."""
    return "mlp.shared_expert" if mixture.shared_gate else "mlp.shared_experts"


def expert_tensors(hidden: int, mixture: MixtureConfig) -> Shapes:
    """The experts' matrices, as the checkpoint holds them."""
    experts, wide = mixture.experts, mixture.intermediate
    if mixture.layout == "merged":
        return {
            f"{EXPERTS}.gate_up_proj": (experts, 2 * wide, hidden),
            f"{EXPERTS}.down_proj": (experts, hidden, wide),
        }
    shapes = _gated("", hidden, wide)
    if mixture.layout == "stacked":
        return {f"{EXPERTS}{name}": (experts, *shape) for name, shape in shapes.items()}
    return {
        f"{EXPERTS}.{expert}{name}": shape
        for expert in range(experts)
        for name, shape in shapes.items()
    }


def _gated(name: str, hidden: int, wide: int, *, bias: bool = False) -> Shapes:
    return {
        **_matrix(f"{name}.gate_proj", wide, hidden, bias=bias),
        **_matrix(f"{name}.up_proj", wide, hidden, bias=bias),
        **_matrix(f"{name}.down_proj", hidden, wide, bias=bias),
    }


def _matrix(name: str, n: int, k: int, *, bias: bool = False) -> Shapes:
    weight = {f"{name}.weight": (n, k)}
    return {**weight, f"{name}.bias": (n,)} if bias else weight
