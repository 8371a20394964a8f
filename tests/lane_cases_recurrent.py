"""Rules of recurrences, and of a batch: a graph each fires on, and one for each way it must not."""

from typing import Any

from bedstone.lane.launch import Conv, Delta, ToScratch
from lane_cases import AGAIN, ATTEND, FIRST, ONCE, Case
from lane_graphs import Refusing, without

CONV = "c = conv(x=x, w=T, ring=ring, version=ring@1)\n"
ACT = f"{CONV}y = act(x=c, fn=silu)"
UNIT = f"{CONV}a = act(x=c, fn=silu)\ny = l2norm(x=a, eps=1e-06, unit=16)"
GATED = (
    "n = norm(x=x, w=h, eps=1e-05, unit=16)\nz = linear(x=x, w=W0)\ng = act(x=z, fn=silu)\n"
    "y = mul(a=n, b=g)"
)
SIZES = "state=state, version=state@1, key_heads=2, heads=2, dk=16, dv=32, scale=0.25"
KEYS = "i = linear(x=x, w=HK)\n"
HEADS = "a = linear(x=x, w=A)\nbb = linear(x=x, w=A)\n"
GATES = "g = decay(a=a, a_log=al, dt=dt)\nbeta = act(x=bb, fn=sigmoid)\n"
RULE = f"y = delta(q=i, k=i, v=x, g=g, beta=beta, {SIZES})"
DELTA = f"{KEYS}{HEADS}{GATES}{RULE}"
PLACED = f"{DELTA.replace('y =', 'd =')}\nS@1 = set(table=S, x=d, {FIRST})"
CONVS = (
    f"{KEYS}{HEADS}{GATES}kc = conv(x=i, w=T2, ring=ring.k, version=ring.k@1)\n"
    f"vc = conv(x=x, w=T, ring=ring, version=ring@1)\n"
    + RULE.replace("q=i, k=i, v=x", "q=i, k=kc, v=vc")
)

KEPT_KEYS = f"S32@1 = set(table=S32, x=i, {FIRST})\n"
KEYS_AGAIN = f"S32@2 = set(table=S32@1, x=i, {FIRST})\nup = linear(x=S32@2, w=HV)\n"

ROWS = "x.0 = row(x=x, at=fixed(row=0))\nx.1 = row(x=x, at=fixed(row=1))\n"
KEPT = "".join(
    f"{t}.{i}@1 = set(table={t}.{i}, x=x.{i}, at=atparam(param=pos.{i}))\n"
    for i in range(2)
    for t in "KV"
)
LOOKS = "".join(
    f"a.{i} = attention(q=x.{i}, k=K.{i}@1, v=V.{i}@1, {ATTEND.replace('pos=pos', f'pos=pos.{i}')})"
    f"\nS@{i + 1} = set(table=S{'@1' if i else ''}, x=a.{i}, at=fixed(row={i}))\n"
    for i in range(2)
)
BATCH = f"{ROWS}{KEPT}{LOOKS}"
GATED_BATCH = f"{BATCH}g = act(x=x, fn=sigmoid)\ny = mul(a=S@2, b=g)"
VALUES = "v = linear(x=x, w=W0)\nv.0 = row(x=v, at=fixed(row=0))\nv.1 = row(x=v, at=fixed(row=1))\n"
OWN = f"{ROWS}{VALUES}{KEPT}{LOOKS}".replace("table=V.0, x=x.0", "table=V.0, x=v.0").replace(
    "table=V.1, x=x.1", "table=V.1, x=v.1"
)


def activates(launch: Any) -> bool:
    return isinstance(launch, Conv) and launch.act is not None


def norms(launch: Any) -> bool:
    return isinstance(launch, Conv) and launch.parts[0].unit is not None


def places(launch: Any) -> bool:
    return isinstance(launch, Delta) and isinstance(launch.dst, ToScratch)


FIRES = {
    "conv_act": Case("conv_act", ACT),
    "conv_norm": Case("conv_norm", UNIT),
    "conv_norm-alone": Case("conv_norm", f"{CONV}y = l2norm(x=c, eps=1e-06, unit=16)", rows=3),
    "gated_norm": Case("gated_norm", GATED),
    "gated_norm-either-way-round": Case("gated_norm", GATED.replace("a=n, b=g", "a=g, b=n")),
    "delta_gates": Case("delta_gates", DELTA, rows=3),
    "delta_set": Case("delta_set", PLACED, out="S@1"),
    "conv_parts": Case("conv_parts", CONVS),
    "attn_output_gate-batch": Case("attn_output_gate", GATED_BATCH, batch=True),
    "attn_output_gate-batch-set-apart": Case(
        "attn_output_gate", GATED_BATCH, batch=True, options={"held": ("attention_set",)}
    ),
    "linear_set-batch": Case("linear_set", OWN, out="S@2", batch=True),
}  # fmt: skip

HOLDS = {
    "conv_act reader": Case(
        "conv_act", ACT.replace("y =", "z =") + "\ny = add(a=z, b=c)", reason="reader"
    ),
    "conv_act escape": Case("conv_act", ACT, reason="escape", outputs="logits, next, c"),
    "conv_act shim": Case("conv_act", ACT, reason="shim", options={"shim": Refusing(activates)}),
    "conv_norm reader": Case(
        "conv_norm", UNIT.replace("y =", "z =") + "\ny = add(a=z, b=a)", reason="reader"
    ),
    "conv_norm escape": Case("conv_norm", UNIT, reason="escape", outputs="logits, next, a"),
    "conv_norm shim": Case("conv_norm", UNIT, reason="shim", options={"shim": Refusing(norms)}),
    "gated_norm reader": Case(
        "gated_norm", GATED.replace("y =", "q =") + "\ny = add(a=q, b=n)", reason="reader"
    ),
    "gated_norm escape": Case("gated_norm", GATED, reason="escape", outputs="logits, next, g"),
    "gated_norm version": Case(
        "gated_norm",
        f"{ONCE}n = norm(x=S@1, w=h, eps=1e-05, unit=16)\n{AGAIN}g = act(x=S@2, fn=silu)\n"
        "y = mul(a=n, b=g)",
        reason="version",
    ),
    "gated_norm shim": Case(
        "gated_norm", GATED, reason="shim", options={"shim": without("gated_norm")}
    ),
    "delta_gates reader": Case(
        "delta_gates",
        DELTA.replace("y =", "z =") + "\ngg = concat(a=g, b=g, units=1)\n"
        "p = concat(a=i, b=i, units=1)\nt = xsum(x=z, w=g)\ny = concat(a=t, b=t, units=1)",
        reason="reader",
    ),
    "delta_gates escape": Case(
        "delta_gates", DELTA, reason="escape", outputs="logits, next, beta"
    ),
    "delta_gates version": Case(
        "delta_gates",
        f"{KEYS}{HEADS}S2@1 = set(table=S2, x=a, {FIRST})\n"
        + GATES.replace("a=a,", "a=S2@1,").replace(
            "beta = act(x=bb,", f"S2@2 = set(table=S2@1, x=bb, {FIRST})\nbeta = act(x=S2@2,"
        )
        + RULE,
        reason="version",
    ),
    "delta_gates shim": Case(
        "delta_gates", DELTA, reason="shim", options={"shim": without("delta_gates")}
    ),
    "delta_set reader": Case(
        "delta_set", f"{PLACED}\ny = add(a=d, b=S@1)", reason="reader"
    ),
    "delta_set escape": Case(
        "delta_set", PLACED, out="S@1", reason="escape", outputs="logits, next, d"
    ),
    "delta_set version": Case(
        "delta_set",
        f"{ONCE}{PLACED}".replace("v=x", "v=S@1").replace(
            f"S@1 = set(table=S, x=d, {FIRST})",
            f"{AGAIN}S@3 = set(table=S@2, x=d, {FIRST})",
        ),
        out="S@3",
        reason="version",
    ),
    "delta_set shim": Case(
        "delta_set", PLACED, out="S@1", reason="shim",
        options={"shim": Refusing(places)},
    ),
    "conv_parts convex": Case(
        "conv_parts",
        CONVS.replace("conv(x=x, w=T,", "conv(x=hung, w=T,").replace(
            "vc =", "up = linear(x=kc, w=HV)\nhung = add(a=x, b=up)\nvc ="
        ),
        reason="convex",
    ),
    "conv_parts version": Case(
        "conv_parts",
        CONVS.replace("kc = conv(x=i,", f"{KEPT_KEYS}kc = conv(x=S32@1,")
        .replace("vc =", f"{KEYS_AGAIN}vc =")
        .replace("conv(x=x, w=T,", "conv(x=up, w=T,"),
        reason="version",
    ),
    "conv_parts shim": Case(
        "conv_parts", CONVS, reason="shim", options={"shim": without("conv_parts2")}
    ),
    "linear_set shape": Case(
        "linear_set",
        OWN.replace("table=V.0, x=v.0", "table=V.0, x=v.x").replace("x=v.1", "x=v.0").replace(
            "x=v.x", "x=v.1"
        ),
        out="S@2",
        reason="shape",
        batch=True,
    ),
}  # fmt: skip
