"""Canonical tensor names, those of Hugging Face checkpoints, and what GGUF files call the same.

The tables say which tensors a model of a given config needs and in which shape: what is missing or
has another shape stops a load, what nothing uses is reported.
"""

from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.layers import layer_tensors

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
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.gate_proj": "ffn_gate_exps",
    "mlp.experts.up_proj": "ffn_up_exps",
    "mlp.experts.down_proj": "ffn_down_exps",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
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


def whole_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The tensors a model has once: canonical name to shape, outermost first.

    A tied model has no output matrix of its own.
    """
    found: dict[str, tuple[int, ...]] = {
        EMBEDDING: (config.vocab, config.hidden),
        FINAL_NORM: (config.hidden,),
    }
    if not config.tie_embeddings:
        found[HEAD] = (config.vocab, config.hidden)
    return found


def expected_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor the model reads: canonical name to shape, outermost first."""
    expected = whole_tensors(config)
    for layer in range(config.layers):
        for below, shape in layer_tensors(config, layer).items():
            expected[f"model.layers.{layer}.{below}"] = shape
    return expected
