"""Multi-head latent attention: one cached row a position, the latent and a rotated key all share.

In two forms that agree. A step of one row a sequence is *absorbed*: the matrix that would make keys
is applied to the queries, the one that would make values to what was attended to, and the cached
rows themselves are attended to. A chunk is *expanded*: it has rows enough to make keys and values
of the cached rows.
"""

from bedstone.checkpoint.config import LatentConfig
from bedstone.checkpoint.constants import part_name
from bedstone.graph.step import (
    AtParam,
    Attention,
    Concat,
    HLinear,
    Linear,
    Norm,
    Out,
    Part,
    Ref,
    Rope,
    Set,
)
from bedstone.models.attention import output
from bedstone.models.body import Body
from bedstone.models.sequences import Rows, each_sequence


def latent_attention(body: Body, layer: int, x: Ref, sizes: LatentConfig) -> Ref:
    """Attention of the normed stream `x`, projected back to the model's width."""
    q, latents = _queries(body, layer, x, sizes), _latents(body, layer, x, sizes)
    make = _expanded if body.build.form == "chunk" else _absorbed
    return output(body, layer, make(body, layer, {"q": q, **latents}, sizes))


def _queries(body: Body, layer: int, x: Ref, sizes: LatentConfig) -> Ref:
    """Queries [rows, heads * (own + turned)], through a latent of their own where there is one."""
    config, name = body.config, f"model.layers.{layer}.self_attn"
    width = config.heads * config.head_dim
    if sizes.query_rank is None:
        return body.project(f"l{layer}.q", x, f"{name}.q_proj", width, bias=False)
    a = body.project(
        f"l{layer}.qa", x, f"{name}.q_a_proj", sizes.query_rank, bias=config.attention_bias
    )
    n = _norm(body, f"l{layer}.qan", a, f"{name}.q_a_layernorm", sizes)
    return body.project(f"l{layer}.q", n, f"{name}.q_b_proj", width, bias=False)


def _latents(body: Body, layer: int, x: Ref, sizes: LatentConfig) -> Rows:
    """The latent `c` of each row and the part `kp` of a key that turns."""
    build, width = body.build, sizes.kv_rank + sizes.turned
    weight = f"model.layers.{layer}.self_attn.kv_a_proj_with_mqa"
    kv = body.project(f"l{layer}.kv", x, weight, width, bias=body.config.attention_bias)
    c = Part(kv, Out(f"l{layer}.c"), width, 0, sizes.kv_rank, 1)
    kp = Part(kv, Out(f"l{layer}.kp"), width, sizes.kv_rank, sizes.turned, 1)
    return {"c": build.add(c), "kp": build.add(kp)}


def _norm(body: Body, out: str, x: Ref, weight: str, sizes: LatentConfig) -> Ref:
    width = body.build.value(x).width
    w = body.const(f"{weight}.weight", width)
    return body.build.add(Norm(x, w, Out(out), sizes.norm_eps, width))


def _absorbed(body: Body, layer: int, rows: Rows, sizes: LatentConfig) -> Ref:
    """The cached rows attended to by queries carried over to the latent's space."""
    build, heads, pitch = body.build, body.config.heads, body.config.head_dim
    own = build.add(Part(rows["q"], Out(f"l{layer}.qo"), pitch, 0, sizes.own, heads))
    turned = build.add(Part(rows["q"], Out(f"l{layer}.qp"), pitch, sizes.own, sizes.turned, heads))
    keys = _up(body, layer, "key", sizes.own, sizes)
    ql = build.add(HLinear(own, keys, Out(f"l{layer}.ql"), heads, transposed=True))
    taken = {"ql": ql, "qp": turned, "c": rows["c"], "kp": rows["kp"]}

    def one_sequence(own: str, rows: Rows) -> Ref:
        return _attend_latents(body, layer, own, rows, sizes)

    attended = each_sequence(body, layer, taken, heads * sizes.kv_rank, one_sequence)
    values = _up(body, layer, "value", sizes.value_dim, sizes)
    return build.add(HLinear(attended, values, Out(f"l{layer}.av"), heads))


def _up(body: Body, layer: int, part: str, width: int, sizes: LatentConfig) -> Ref:
    """The matrices [heads, width, kv_rank] from the latent to each head's keys or values."""
    tensor = f"model.layers.{layer}.self_attn.kv_b_proj.weight"
    return body.const(part_name(tensor, part), body.config.heads, width, sizes.kv_rank)


def _attend_latents(body: Body, layer: int, own: str, rows: Rows, sizes: LatentConfig) -> Ref:
    build, heads = body.build, body.config.heads
    qp = _turned(body, f"l{layer}.qr{own}", rows["qp"], own, (heads, sizes.turned, 0))
    q = build.add(Concat(rows["ql"], qp, Out(f"l{layer}.qj{own}"), heads))
    cache = _cached(body, layer, own, rows, sizes)
    return build.add(
        Attention(
            q,
            cache,
            cache,
            Out(f"l{layer}.a{own}"),
            f"pos{own}",
            heads=heads,
            groups=1,
            dk=sizes.kv_rank + sizes.turned,
            dv=sizes.kv_rank,
            scale=body.config.attention_scale,
        )
    )


def _expanded(body: Body, layer: int, rows: Rows, sizes: LatentConfig) -> Ref:
    """Keys and values made of every cached row, and attended to as of any heads."""
    build, heads, width = body.build, body.config.heads, body.config.head_dim
    q = _turned(body, f"l{layer}.qr", rows["q"], "", (heads, width, sizes.own))
    cache = _cached(body, layer, "", rows, sizes)
    k, v = _keys_and_values(body, layer, cache, sizes)
    return build.add(
        Attention(
            q,
            k,
            v,
            Out(f"l{layer}.a"),
            "pos",
            heads=heads,
            groups=heads,
            dk=width,
            dv=sizes.value_dim,
            scale=body.config.attention_scale,
        )
    )


def _keys_and_values(body: Body, layer: int, cache: Ref, sizes: LatentConfig) -> tuple[Ref, Ref]:
    """Keys [capacity, heads * (own + turned)] and values, of a table of latents."""
    build, heads, row = body.build, body.config.heads, sizes.kv_rank + sizes.turned
    c = build.add(Part(cache, Out(f"l{layer}.cc"), row, 0, sizes.kv_rank, 1))
    kp = build.add(Part(cache, Out(f"l{layer}.ck"), row, sizes.kv_rank, sizes.turned, 1))
    pitch = sizes.own + sizes.value_dim
    weight = f"model.layers.{layer}.self_attn.kv_b_proj.weight"
    up = build.add(
        Linear(c, body.const(weight, heads * pitch, sizes.kv_rank), Out(f"l{layer}.ckv"))
    )
    own = build.add(Part(up, Out(f"l{layer}.ko"), pitch, 0, sizes.own, heads))
    v = build.add(Part(up, Out(f"l{layer}.v"), pitch, sizes.own, sizes.value_dim, heads))
    return build.add(Concat(own, kp, Out(f"l{layer}.k"), heads, shared=True)), v


def _cached(body: Body, layer: int, own: str, rows: Rows, sizes: LatentConfig) -> Ref:
    """The table of a sequence's latents, with this step's rows written: normed | turned."""
    build, name, at = body.build, f"c.{layer}{own}", AtParam(body.build.param(f"pos{own}"))
    weight = f"model.layers.{layer}.self_attn.kv_a_layernorm"
    c = _norm(body, f"l{layer}.cn{own}", rows["c"], weight, sizes)
    kp = _turned(body, f"l{layer}.kr{own}", rows["kp"], own, (1, sizes.turned, 0))
    table = body.table(name, sizes.kv_rank + sizes.turned)
    half = build.add(Set(table, c, Out(f"{name}@1"), at, column=0))
    return build.add(Set(half, kp, Out(f"{name}@2"), at, column=sizes.kv_rank))


def _turned(body: Body, out: str, x: Ref, own: str, heads: tuple[int, int, int]) -> Ref:
    """The rotated part of each head at the sequence's positions; `heads`: count, width, offset."""
    count, width, offset = heads
    rope, pos = body.config.rope, body.build.param(f"pos{own}")
    turn = Rope(x, Out(out), body.rope(rope), pos, count, width, rope.rot, rope.kind, offset)
    return body.build.add(turn)
