"""Blocks the families share: embedding, decoder layer, feed-forward, head."""

from collections.abc import Callable

from bedstone.graph.step import (
    Act,
    Add,
    ArgMax,
    AtParam,
    Embed,
    Fixed,
    Linear,
    Mul,
    Out,
    Ref,
    Row,
    RowSel,
)
from bedstone.models.body import Body

Block = Callable[[Body, int, Ref], Ref]
"""A block of a layer: what it makes of the normed stream."""

_EMBEDDING = "model.embed_tokens.weight"


def feed_forward(body: Body, layer: int, x: Ref) -> Ref:
    """`down(act(gate(x)) * up(x))`."""
    config, name, bias = body.config, f"model.layers.{layer}.mlp", body.config.mlp_bias
    wide = config.intermediate
    gate = body.project(f"l{layer}.gate", x, f"{name}.gate_proj", wide, bias=bias)
    up = body.project(f"l{layer}.up", x, f"{name}.up_proj", wide, bias=bias)
    act = body.build.add(Act(gate, Out(f"l{layer}.act"), config.activation))
    glu = body.build.add(Mul(act, up, Out(f"l{layer}.glu")))
    return body.project(f"l{layer}.down", glu, f"{name}.down_proj", config.hidden, bias=bias)


def decoder(body: Body, mix: Block, feed: Block = feed_forward) -> tuple[Ref, Ref]:
    """A pre-norm decoder: embed, the layers, the head. The logits and the next tokens.

    In each layer `mix` reads other rows of the sequence, `feed` the row itself.
    """
    x = embed(body)
    for layer in range(body.config.layers):
        x = decoder_layer(body, layer, x, mix, feed)
    return head(body, x)


def embed(body: Body) -> Ref:
    """The rows of this step's ids: the prompt a caller gives a chunk, else the carried tokens."""
    ids = body.build.carried("prompt" if body.build.form == "chunk" else "token")
    table = body.const(_EMBEDDING, body.config.vocab, body.config.hidden)
    return body.build.add(Embed(ids, table, Out("x.0")))


def decoder_layer(body: Body, layer: int, x: Ref, mix: Block, feed: Block) -> Ref:
    """Both blocks in turn, each of the normed stream and added to it."""
    build, hidden, name = body.build, body.config.hidden, f"model.layers.{layer}"
    n = body.norm(f"l{layer}.n", x, f"{name}.input_layernorm", hidden)
    h = build.add(Add(x, mix(body, layer, n), Out(f"l{layer}.h")))
    m = body.norm(f"l{layer}.m", h, f"{name}.post_attention_layernorm", hidden)
    return build.add(Add(h, feed(body, layer, m), Out(f"x.{layer + 1}")))


def head(body: Body, x: Ref) -> tuple[Ref, Ref]:
    """Logits of the last row (of each sequence), and the token each picks."""
    config, build = body.config, body.build
    if build.form == "chunk":
        x = build.add(Row(x, Out("last"), _last_row(body)))
    n = body.norm("final", x, "model.norm", config.hidden)
    name = _EMBEDDING if config.tie_embeddings else "lm_head.weight"
    logits = build.add(Linear(n, body.const(name, config.vocab, config.hidden), Out("logits")))
    return logits, build.add(ArgMax(logits, Out("next")))


def _last_row(body: Body) -> RowSel:
    build = body.build
    return Fixed(build.rows - 1) if build.row_param is None else AtParam(build.row_param)
