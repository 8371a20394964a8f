"""Canonical tensor names, those of Hugging Face checkpoints, and what GGUF files call the same.

The tables say which tensors a model of a given config needs and in which shape: what is missing or
has another shape stops a load, what nothing uses is reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.checkpoint.config import ModelConfig

EMBEDDING, HEAD, FINAL_NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"

WHOLE = {EMBEDDING: "token_embd.weight", FINAL_NORM: "output_norm.weight", HEAD: "output.weight"}
"""Tensors a model has once: canonical name to GGUF name."""

LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Modules a layer has: canonical name below `model.layers.N.` to GGUF name below `blk.N.`."""

INERT_SUFFIXES = ("rotary_emb.inv_freq",)
"""Tensors old writers store and no reader uses: the config already says what they hold."""


def gguf_name(canonical: str) -> str:
    """What a GGUF file calls the tensor."""
    whole = WHOLE.get(canonical)
    if whole is not None:
        return whole
    layer, _, rest = canonical.removeprefix("model.layers.").partition(".")
    module, _, leaf = rest.rpartition(".")
    return f"blk.{layer}.{LAYER[module]}.{leaf}"


@dataclass(frozen=True, slots=True)
class Module:
    """A matrix [n, k] with a bias or not, or a vector [n] where `k` is None."""

    name: str
    n: int
    k: int | None = None
    bias: bool = False


def layer_modules(config: ModelConfig) -> tuple[Module, ...]:
    """The modules of each layer of `config`."""
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    hidden, wide = config.hidden, config.intermediate
    norms = ("self_attn.q_norm", "self_attn.k_norm") if config.qk_norm else ()
    return (
        Module("input_layernorm", hidden),
        Module("self_attn.q_proj", q, hidden, config.attention_bias),
        Module("self_attn.k_proj", kv, hidden, config.attention_bias),
        Module("self_attn.v_proj", kv, hidden, config.attention_bias),
        Module("self_attn.o_proj", hidden, q, config.attention_out_bias),
        *(Module(name, config.head_dim) for name in norms),
        Module("post_attention_layernorm", hidden),
        Module("mlp.gate_proj", wide, hidden, config.mlp_bias),
        Module("mlp.up_proj", wide, hidden, config.mlp_bias),
        Module("mlp.down_proj", hidden, wide, config.mlp_bias),
    )


def expected_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor the model reads: canonical name to shape, outermost first.

    A tied model has no output matrix of its own.
    """
    expected: dict[str, tuple[int, ...]] = {
        EMBEDDING: (config.vocab, config.hidden),
        FINAL_NORM: (config.hidden,),
    }
    if not config.tie_embeddings:
        expected[HEAD] = (config.vocab, config.hidden)
    modules = layer_modules(config)
    for layer in range(config.layers):
        for module in modules:
            expected.update(_tensors(f"model.layers.{layer}.{module.name}", module))
    return expected


def _tensors(name: str, module: Module) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (module.n,) if module.k is None else (module.n, module.k)
    if module.bias:
        yield f"{name}.bias", (module.n,)
