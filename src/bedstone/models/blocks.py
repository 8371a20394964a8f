"""What the families share: embedding, decoder layer, head."""

from collections.abc import Callable
from dataclasses import dataclass

from bedstone.graph.step import (
    Add,
    ArgMax,
    AtParam,
    Embed,
    Finish,
    Fixed,
    Linear,
    Out,
    Ref,
    Row,
    RowSel,
    Sample,
    Softcap,
)
from bedstone.models.body import Body
from bedstone.models.feed_forward import feed_forward

Block = Callable[[Body, int, Ref], Ref]
"""A block of a layer: what it makes of the normed stream."""

EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class Frame:
    """The norms around a block, by their weights' names; `after` is of what the block made."""

    before: str
    after: str | None = None


_PRE_NORM = (Frame("input_layernorm"), Frame("post_attention_layernorm"))
_SANDWICH = (
    Frame("input_layernorm", "post_attention_layernorm"),
    Frame("pre_feedforward_layernorm", "post_feedforward_layernorm"),
)


def embed(body: Body, out: str = "x.0") -> Ref:
    """The rows of this step's ids: the prompt a caller gives a chunk, else the carried tokens."""
    ids = body.build.carried("prompt" if body.build.form == "chunk" else "token")
    table = body.const(EMBEDDING, body.config.vocab, body.config.hidden)
    return body.build.add(Embed(ids, table, Out(out)))


def decoder(body: Body, mix: Block, start: Callable[[Body], Ref] = embed) -> tuple[Ref, Ref]:
    """A decoder: the embedded ids, the layers, the head. The logits and the next tokens.

    In each layer `mix` reads other rows of the sequence, the feed-forward block the row itself.
    """
    x = start(body)
    for layer in range(body.config.layers):
        x = decoder_layer(body, layer, x, mix)
    return head(body, x)


def decoder_layer(body: Body, layer: int, x: Ref, mix: Block) -> Ref:
    """Both blocks in turn, each of the normed stream and added to it."""
    mixing, feeding = _SANDWICH if body.config.sandwich_norms else _PRE_NORM
    n = _norm(body, layer, "n", x, mixing.before)
    mixed = _norm(body, layer, "on", mix(body, layer, n), mixing.after)
    h = body.build.add(Add(x, mixed, Out(f"l{layer}.h")))
    m = _norm(body, layer, "m", h, feeding.before)
    fed = _norm(body, layer, "fn", feed_forward(body, layer, m), feeding.after)
    return body.build.add(Add(h, fed, Out(f"x.{layer + 1}")))


def _norm(body: Body, layer: int, role: str, x: Ref, weight: str | None) -> Ref:
    """`x` normed as a whole, where there is a weight."""
    if weight is None:
        return x
    name = f"model.layers.{layer}.{weight}"
    return body.norm(f"l{layer}.{role}", x, name, body.config.hidden)


def head(body: Body, x: Ref) -> tuple[Ref, Ref]:
    """Logits of the last row (of each sequence), and the token that each goes on with."""
    config, build = body.config, body.build
    if build.form == "chunk":
        x = build.add(Row(x, Out("last"), _last_row(body)))
    n = body.norm("final", x, "model.norm", config.hidden)
    name = EMBEDDING if config.tie_embeddings else "lm_head.weight"
    cap, w = config.logit_cap, body.const(name, config.vocab, config.hidden)
    logits = build.add(Linear(n, w, Out("logits" if cap is None else "uncapped")))
    if cap is not None:
        logits = build.add(Softcap(logits, Out("logits"), cap))
    if not body.sampled:
        return logits, build.add(ArgMax(logits, Out("next")))
    drawn = build.add(Sample(logits, Out("drawn")))
    return logits, build.add(Finish(drawn, Out("next")))


def _last_row(body: Body) -> RowSel:
    build = body.build
    return Fixed(build.rows - 1) if build.row_param is None else AtParam(build.row_param)
