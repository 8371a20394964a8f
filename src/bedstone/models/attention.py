"""The attention block: projections, optional norms of each head, rotation, cache, attention."""

from bedstone.graph.step import AtParam, Attention, Out, Ref, Rope, Set
from bedstone.models.body import Body
from bedstone.models.sequences import Rows, each_sequence


def attention(body: Body, layer: int, x: Ref, *, head_norm: bool) -> Ref:
    """Attention of the normed stream `x`, projected back to the model's width."""
    q = project_heads(body, layer, "q", x, body.config.heads)
    return output(body, layer, attend(body, layer, x, q, head_norm=head_norm))


def project_heads(body: Body, layer: int, role: str, x: Ref, heads: int) -> Ref:
    """The queries, keys or values of `x`."""
    config, weight = body.config, f"model.layers.{layer}.self_attn.{role}_proj"
    width = heads * config.head_dim
    return body.project(f"l{layer}.{role}", x, weight, width, bias=config.attention_bias)


def attend(body: Body, layer: int, x: Ref, q: Ref, *, head_norm: bool) -> Ref:
    """Attention of the queries `q` to keys and values of `x` and of the rows before."""
    config = body.config
    k, v = (project_heads(body, layer, role, x, config.kv_heads) for role in "kv")

    def one_sequence(own: str, rows: Rows) -> Ref:
        return _attend(body, layer, own, rows, head_norm=head_norm)

    width = config.heads * config.head_dim
    return each_sequence(body, layer, {"q": q, "k": k, "v": v}, width, one_sequence)


def output(body: Body, layer: int, x: Ref) -> Ref:
    """The heads' results, projected back to the model's width."""
    config, weight = body.config, f"model.layers.{layer}.self_attn.o_proj"
    return body.project(f"l{layer}.o", x, weight, config.hidden, bias=config.attention_out_bias)


def _attend(body: Body, layer: int, own: str, rows: Rows, *, head_norm: bool) -> Ref:
    """Normed and rotated queries and keys; keys and values cached; the queries' attention."""
    config, pos = body.config, body.build.param(f"pos{own}")
    q = _turned(body, layer, "q", rows["q"], own, head_norm=head_norm)
    k = _turned(body, layer, "k", rows["k"], own, head_norm=head_norm)
    keys = _cached(body, layer, "k", k, own)
    values = _cached(body, layer, "v", rows["v"], own)
    return body.build.add(
        Attention(
            q,
            keys,
            values,
            Out(f"l{layer}.a{own}"),
            pos,
            heads=config.heads,
            groups=config.kv_heads,
            dk=config.head_dim,
            dv=config.head_dim,
            scale=config.attention_scale,
            window=config.window(layer),
        )
    )


def _turned(body: Body, layer: int, role: str, x: Ref, own: str, *, head_norm: bool) -> Ref:
    """The heads of a query or key, normed where the family does so, at the sequence's positions."""
    config, rope = body.config, body.config.layer_rope(layer)
    if head_norm:
        weight = f"model.layers.{layer}.self_attn.{role}_norm"
        x = body.norm(f"l{layer}.{role}n{own}", x, weight, config.head_dim)
    return body.build.add(
        Rope(
            x,
            Out(f"l{layer}.{role}r{own}"),
            body.rope(rope),
            f"pos{own}",
            heads=body.build.value(x).width // config.head_dim,
            head_dim=config.head_dim,
            rot=rope.rot,
            kind=rope.kind,
        )
    )


def _cached(body: Body, layer: int, role: str, x: Ref, own: str) -> Ref:
    """The table of a sequence's keys or values with this step's rows written."""
    name = f"{role}.{layer}{own}"
    table = body.table(name, body.build.value(x).width)
    return body.build.add(Set(table, x, Out(f"{name}@1"), AtParam(f"pos{own}")))
