"""The attention block: projections, optional norms of each head, rotation, cache, attention.

Most functions take `own`, which ends the names of what belongs to one sequence: "" in a step of one
sequence, `.{i}` in a batch.
"""

from bedstone.graph.step import AtParam, Attention, Fixed, Out, Ref, Rope, Row, Set, Table
from bedstone.models.body import Body


def attention(body: Body, layer: int, x: Ref, *, head_norm: bool) -> Ref:
    """Attention of the normed stream `x`, projected back to the model's width."""
    config, name = body.config, f"model.layers.{layer}.self_attn"
    q_width, kv_width = config.heads * config.head_dim, config.kv_heads * config.head_dim
    qkv = tuple(
        body.project(f"l{layer}.{r}", x, f"{name}.{r}_proj", width, bias=config.attention_bias)
        for r, width in (("q", q_width), ("k", kv_width), ("v", kv_width))
    )
    if body.build.form == "batch":
        attended = _each_sequence(body, layer, qkv, head_norm=head_norm)
    else:
        attended = _one_sequence(body, layer, "", qkv, head_norm=head_norm)
    bias = config.attention_out_bias
    return body.project(f"l{layer}.o", attended, f"{name}.o_proj", config.hidden, bias=bias)


def _each_sequence(body: Body, layer: int, qkv: tuple[Ref, ...], *, head_norm: bool) -> Ref:
    """A sequence a row: its own rows taken, attended in its own tables, and put back together."""
    build, width = body.build, body.config.heads * body.config.head_dim
    rows = build.table(Table(f"l{layer}.rows", build.rows, width, scratch=True))
    for i in range(build.rows):
        row = tuple(
            build.add(Row(x, Out(f"l{layer}.{role}.{i}"), Fixed(i)))
            for role, x in zip("qkv", qkv, strict=True)
        )
        attended = _one_sequence(body, layer, f".{i}", row, head_norm=head_norm)
        rows = build.add(Set(rows, attended, Out(f"l{layer}.rows@{i + 1}"), Fixed(i)))
    return rows


def _one_sequence(
    body: Body, layer: int, own: str, qkv: tuple[Ref, ...], *, head_norm: bool
) -> Ref:
    """Normed and rotated queries and keys; keys and values cached; the queries' attention."""
    config, pos = body.config, body.build.param(f"pos{own}")
    q, k, v = qkv
    q = _turned(body, layer, "q", q, own, head_norm=head_norm)
    k = _turned(body, layer, "k", k, own, head_norm=head_norm)
    keys = _cached(body, layer, "k", k, own)
    values = _cached(body, layer, "v", v, own)
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
            window=config.sliding_window,
        )
    )


def _turned(body: Body, layer: int, role: str, x: Ref, own: str, *, head_norm: bool) -> Ref:
    """The heads of a query or key, normed where the family does so, at the sequence's positions."""
    config, rope = body.config, body.config.rope
    if head_norm:
        weight = f"model.layers.{layer}.self_attn.{role}_norm"
        x = body.norm(f"l{layer}.{role}n{own}", x, weight, config.head_dim)
    return body.build.add(
        Rope(
            x,
            Out(f"l{layer}.{role}r{own}"),
            body.rope(),
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
