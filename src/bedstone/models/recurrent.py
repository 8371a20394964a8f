"""The recurrent block of a hybrid: a gated delta net behind short causal convolutions.

A sequence carries, for each such layer, the last rows of its convolutions and a state of each head.
"""

from bedstone.checkpoint.config import RecurrentConfig
from bedstone.checkpoint.constants import part_name
from bedstone.graph.step import (
    Act,
    Conv,
    Decay,
    Delta,
    L2Norm,
    Mul,
    Norm,
    Out,
    Part,
    Ref,
    Table,
)
from bedstone.models.body import Body
from bedstone.models.sequences import Rows, each_sequence

UNIT_EPS = 1e-6
"""Added to a query's or key's squared length."""


def delta_net(body: Body, layer: int, x: Ref, sizes: RecurrentConfig) -> Ref:
    """A gated delta net of the normed stream `x`, projected back to the model's width."""
    build, name = body.build, f"model.layers.{layer}.linear_attn"
    project = _packed if sizes.packed else _split
    rows, z = project(body, layer, x, sizes)

    def one_sequence(own: str, rows: Rows) -> Ref:
        return _recur(body, layer, own, rows, sizes)

    y = each_sequence(body, layer, rows, sizes.value_width, one_sequence)
    weight = body.const(f"{name}.norm.weight", sizes.value_dim)
    n = build.add(Norm(y, weight, Out(f"l{layer}.un"), body.config.norm_eps, sizes.value_dim))
    gate = build.add(Act(z, Out(f"l{layer}.zs"), "silu"))
    gated = build.add(Mul(n, gate, Out(f"l{layer}.gated")))
    return body.project(f"l{layer}.o", gated, f"{name}.out_proj", body.config.hidden, bias=False)


def _packed(body: Body, layer: int, x: Ref, sizes: RecurrentConfig) -> tuple[Rows, Ref]:
    """What the recurrence reads, and the gate, of two products: both laid out key head by key head.

    A key head has its query, key, values and gates in the first, its betas and decays in the other.
    """
    share = sizes.value_heads // sizes.key_heads
    widths = {"q": sizes.key_dim, "k": sizes.key_dim}
    widths |= dict.fromkeys("vz", share * sizes.value_dim)
    parts = {
        **_parts(body, layer, x, widths, sizes.key_heads),
        **_parts(body, layer, x, dict.fromkeys("ba", share), sizes.key_heads),
    }
    return parts, parts.pop("z")


def _split(body: Body, layer: int, x: Ref, sizes: RecurrentConfig) -> tuple[Rows, Ref]:
    """The same of four products: one of queries, keys and values side by side."""
    widths = {"q": sizes.key_width, "k": sizes.key_width, "v": sizes.value_width}
    heads = sizes.value_heads
    b, a = (_product(body, layer, x, role, heads) for role in "ba")
    z = _product(body, layer, x, "z", sizes.value_width)
    return {**_parts(body, layer, x, widths, 1), "b": b, "a": a}, z


def _parts(body: Body, layer: int, x: Ref, widths: dict[str, int], units: int) -> dict[str, Ref]:
    """The parts of one product by role, side by side within each of `units`."""
    pitch, offset, parts = sum(widths.values()), 0, {}
    y = _product(body, layer, x, "".join(widths), units * pitch)
    for role, width in widths.items():
        window = Part(y, Out(f"l{layer}.{role}"), pitch, offset, width, units)
        parts[role] = body.build.add(window)
        offset += width
    return parts


def _product(body: Body, layer: int, x: Ref, roles: str, width: int) -> Ref:
    weight = f"model.layers.{layer}.linear_attn.in_proj_{roles}"
    return body.project(f"l{layer}.{roles}", x, weight, width, bias=False)


def _recur(body: Body, layer: int, own: str, rows: Rows, sizes: RecurrentConfig) -> Ref:
    """One sequence: convolutions, unit queries and keys, gates, and the delta rule."""
    build, name, heads = body.build, f"model.layers.{layer}.linear_attn", sizes.value_heads
    q = _unit(body, layer, "q", own, rows["q"], sizes)
    k = _unit(body, layer, "k", own, rows["k"], sizes)
    v = _convolved(body, layer, "v", own, rows["v"], sizes)
    a_log, dt = (body.const(f"{name}.{vector}", heads) for vector in ("A_log", "dt_bias"))
    g = build.add(Decay(rows["a"], a_log, dt, Out(f"l{layer}.g{own}")))
    beta = build.add(Act(rows["b"], Out(f"l{layer}.beta{own}"), "sigmoid"))
    state = f"state.{layer}{own}"
    table = build.table(Table(state, heads * sizes.key_dim, sizes.value_dim, zeros=True))
    return build.add(
        Delta(
            q,
            k,
            v,
            g,
            beta,
            table,
            Out(f"l{layer}.delta{own}"),
            Out(f"{state}@1"),
            key_heads=sizes.key_heads,
            heads=heads,
            dk=sizes.key_dim,
            dv=sizes.value_dim,
            scale=sizes.key_dim**-0.5,
        )
    )


def _unit(body: Body, layer: int, role: str, own: str, x: Ref, sizes: RecurrentConfig) -> Ref:
    """The heads of a query or key, convolved and brought to unit length."""
    c = _convolved(body, layer, role, own, x, sizes)
    return body.build.add(L2Norm(c, Out(f"l{layer}.{role}u{own}"), UNIT_EPS, sizes.key_dim))


_TAPS = {"q": "query", "k": "key", "v": "value"}


def _convolved(body: Body, layer: int, role: str, own: str, x: Ref, sizes: RecurrentConfig) -> Ref:
    """The activation of `x`, each channel convolved with its rows before."""
    build, width = body.build, body.build.value(x).width
    tensor = f"model.layers.{layer}.linear_attn.conv1d.weight"
    taps = body.const(part_name(tensor, _TAPS[role]), width, sizes.kernel)
    name = f"ring.{role}.{layer}{own}"
    ring = build.table(Table(name, sizes.kernel - 1, width, zeros=True))
    out, version = Out(f"l{layer}.{role}c{own}"), Out(f"{name}@1")
    c = build.add(Conv(x, taps, ring, out, version))
    return build.add(Act(c, Out(f"l{layer}.{role}s{own}"), body.config.activation))
