"""Rules of gated and latent attention: a graph each fires on, and one for each way it must not."""

from lane_cases import AGAIN, AT, ATTEND, ATTENDED, CACHES, ONCE, VALUES, Case, attend
from lane_graphs import AnyShim, without

SCALED = "e = embed(ids=token, table=E)\ny = scale(x=e, by=3.0)"
GATED = f"{ATTENDED}g = act(x=x, fn=sigmoid)\ny = mul(a=a, b=g)"
PRE = "l = linear(x=x, w=W0)\np = norm(x=l, w=w, eps=1e-05, unit=64, plus_one=true)\n"
OTHER = "o = norm(x=x, w=w, eps=1e-05, unit=64)\n"
SANDWICH = PRE + "s = add(a=x, b=p)\nn = norm(x=s, w=w, eps=1e-06, unit=64)\ny = add(a=s, b=n)"

NARROW = "c = linear(x=x, w=HK)\n"
LATENT = f"L@1 = set(table=L, x=x, {AT}, column=0)\nL@2 = set(table=L@1, x=c, {AT}, column=64)\n"
LATENT_HEADS = "pos=pos, heads=2, groups=1, dk=96, dv=64, scale=0.25"
WIDE = "o = concat(a=x, b=x, units=2)\nt = concat(a=c, b=c, units=2)\n"
QUERY = "q = concat(a=o, b=t, units=2)\n"
OVER = f"a = attention(q=q, k=L@2, v=L@2, {LATENT_HEADS})\n"
TAKEN = "y = part(x=a, pitch=128, offset=0, width=64, units=1)"
ABSORBED = f"{NARROW}{WIDE}{QUERY}{LATENT}{OVER}{TAKEN}"
"""Two heads of 96 over one cached row, whose first 64 values are what is attended to."""

NORM = "n = norm(x=x, w=w, eps=1e-05, unit=64)\n"
NORMED = f"{NORM}{ABSORBED.replace('table=L, x=x', 'table=L, x=n')}"

KEYS = (
    f"{NARROW}{LATENT}cc = part(x=L@2, pitch=96, offset=0, width=64, units=1)\n"
    "kp = part(x=L@2, pitch=96, offset=64, width=32, units=1)\nup = linear(x=cc, w=W0)\n"
    "v = part(x=up, pitch=32, offset=0, width=16, units=2)\n"
    "ko = part(x=up, pitch=32, offset=16, width=16, units=2)\n"
    "k = concat(a=ko, b=kp, units=2, shared=true)\n"
)
EXPANDED = (
    f"{KEYS}q = concat(a=c, b=x, units=2)\n"
    "a = attention(q=q, k=k, v=v, pos=pos, heads=2, groups=2, dk=48, dv=16, scale=0.25)\n"
    "y = concat(a=a, b=a, units=1)"
)
"""Two heads of 48: own parts of 16 made of the latent, 32 values of the cached row for both."""

FIRES = {
    "embed_scale": Case("embed_scale", SCALED),
    "attn_output_gate": Case("attn_output_gate", GATED),
    "attn_output_gate-either-way-round": Case(
        "attn_output_gate", GATED.replace("mul(a=a, b=g)", "mul(a=g, b=a)")
    ),
    "attn_output_gate-a-part": Case(
        "attn_output_gate",
        "j = concat(a=x, b=x, units=4)\np = part(x=j, pitch=32, offset=16, width=16, units=4)\n"
        + GATED.replace("act(x=x,", "act(x=p,"),
    ),
    "sandwich_norm": Case("sandwich_norm", SANDWICH),
    "sandwich_norm-either-way-round": Case(
        "sandwich_norm", SANDWICH.replace("add(a=x, b=p)", "add(a=p, b=x)")
    ),
    "sandwich_norm-of-two-norms": Case(
        "sandwich_norm", SANDWICH.replace("s = add(a=x, b=p)", f"{OTHER}s = add(a=o, b=p)")
    ),
    "norm_set": Case("norm_set", NORMED),
    "split_attention": Case("split_attention", ABSORBED),
    "split_attention-keys": Case("split_attention", EXPANDED, rows=3),
}  # fmt: skip

HOLDS = {
    "embed_scale reader": Case(
        "embed_scale", SCALED.replace("y =", "z =") + "\ny = add(a=e, b=z)", reason="reader"
    ),
    "embed_scale escape": Case("embed_scale", SCALED, reason="escape", outputs="logits, next, e"),
    "embed_scale shim": Case(
        "embed_scale", SCALED, reason="shim", options={"shim": without("embed_scaled_q8_0")}
    ),
    "attn_output_gate reader": Case(
        "attn_output_gate", GATED.replace("y =", "z =") + "\ny = add(a=z, b=g)", reason="reader"
    ),
    "attn_output_gate escape": Case(
        "attn_output_gate", GATED, reason="escape", outputs="logits, next, a"
    ),
    "attn_output_gate version": Case(
        "attn_output_gate",
        f"{CACHES}{ONCE}a = attention(q=S@1, k=K@1, v=V@1, {ATTEND})\n{AGAIN}"
        "g = act(x=S@2, fn=sigmoid)\ny = mul(a=a, b=g)",
        reason="version",
    ),
    "attn_output_gate shim": Case(
        "attn_output_gate", GATED, reason="shim", options={"shim": without("attention_gate")}
    ),
    "sandwich_norm reader": Case(
        "sandwich_norm", SANDWICH.replace("y =", "z =") + "\ny = add(a=z, b=p)", reason="reader"
    ),
    "sandwich_norm escape": Case(
        "sandwich_norm", SANDWICH, reason="escape", outputs="logits, next, p"
    ),
    "sandwich_norm version": Case(
        "sandwich_norm",
        f"{ONCE}p = norm(x=S@1, w=w, eps=1e-05, unit=64)\n{AGAIN}s = add(a=S@2, b=p)\n"
        "n = norm(x=s, w=w, eps=1e-06, unit=64)\ny = add(a=s, b=n)",
        reason="version",
    ),
    "sandwich_norm shape": Case(
        "sandwich_norm",
        SANDWICH.replace("w=w, eps=1e-05, unit=64", "w=h, eps=1e-05, unit=16"),
        reason="shape",
    ),
    "sandwich_norm shim": Case(
        "sandwich_norm", SANDWICH, reason="shim", options={"shim": without("add_norm_pre")}
    ),
    "norm_set reader": Case(
        "norm_set", NORMED.replace("y =", "z =") + "\ny = add(a=z, b=n)", reason="reader"
    ),
    "norm_set escape": Case("norm_set", NORMED, reason="escape", outputs="logits, next, n"),
    "norm_set version": Case(
        "norm_set",
        f"{ONCE}n = norm(x=S@1, w=w, eps=1e-05, unit=64)\n{AGAIN}{VALUES}\n"
        f"K@1 = set(table=K, x=S@2, {AT})\nK@2 = set(table=K@1, x=n, {AT})\n" + attend("K@2"),
        reason="version",
        options={"shim": AnyShim()},
    ),
    "norm_set shim": Case(
        "norm_set", NORMED, reason="shim", options={"shim": without("norm_cols")}
    ),
    "split_attention reader": Case(
        "split_attention",
        ABSORBED.replace("y =", "z =")
        + "\np = part(x=q, pitch=192, offset=0, width=64, units=1)\ny = add(a=z, b=p)",
        reason="reader",
    ),
    "split_attention escape": Case(
        "split_attention", ABSORBED, reason="escape", outputs="logits, next, q"
    ),
    "split_attention version": Case(
        "split_attention",
        f"{NARROW}{WIDE}{ONCE}q = concat(a=S@1, b=o, units=2)\n{AGAIN}"
        + LATENT.replace("table=L, x=x", "table=L, x=S@2") + OVER + TAKEN,
        reason="version",
    ),
    "split_attention shape": Case(
        "split_attention", ABSORBED.replace(QUERY, "q = concat(a=o, b=t, units=1)\n"),
        reason="shape",
    ),
    "split_attention shim": Case(
        "split_attention", ABSORBED, reason="shim",
        options={"shim": without("attention_in_split")},
    ),
}  # fmt: skip
