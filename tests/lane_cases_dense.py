"""Rules of the dense families: a graph each fires on, and one for each way it must not."""

from lane_cases import (
    AT,
    ATTEND,
    ATTENDED,
    CACHES,
    FIRST,
    HEADS,
    KEPT,
    VALUES,
    Case,
    attend,
)
from lane_graphs import without

GLU = "g = linear(x=x, w=W0)\nu = linear(x=x, w=W1)\ns = act(x=g, fn=silu)\n"
TURNED = f"n = norm(x=x, w=h, eps=1e-05, unit=16)\nr = rope(x=n, {HEADS})\n"
KEYS = f"{VALUES}\nr = rope(x=x, {HEADS})\nK@1 = set(table=K, x=r, {AT})\n"
ROWS = f"v = linear(x=x, w=W0)\nV@1 = set(table=V, x=v, {AT})\nK@1 = set(table=K, x=x, {AT})\n"
SUM = "l = linear(x=x, w=W0)\ns = add(a=x, b=l)\nn = norm(x=s, w=w, eps=1e-05, unit=64)\n"
PAIR = f"q = linear(x=x, w=W0)\nr = rope(x=q, {HEADS})\n"
BOTH = f"{PAIR}k = rope(x=x, {HEADS})\n{VALUES}\nK@1 = set(table=K, x=k, {AT})\n"
TWO = "l = linear(x=x, w=W0)\nm = linear(x=x, w=W1)\n"

FIRES = {
    "linear_bias": Case("linear_bias", "l = linear(x=x, w=W0)\ny = add(a=l, b=b)"),
    "glu": Case("glu", GLU + "y = mul(a=s, b=u)"),
    "glu-either-way-round": Case("glu", GLU + "y = mul(a=u, b=s)"),
    "qk_norm_rope": Case("qk_norm_rope", TURNED, out="r"),
    "rope_set": Case("rope_set", KEYS + attend()),
    "rope_set-normed": Case("rope_set", f"{VALUES}\n{TURNED}{KEPT}\n" + attend()),
    "linear_set": Case("linear_set", ROWS + attend()),
    "attention_set": Case(
        "attention_set", ATTENDED + f"S@1 = set(table=S, x=a, {FIRST})", out="S@1"
    ),
    "residual_norm": Case(
        "residual_norm", SUM + "z = linear(x=n, w=W1)\ny = add(a=s, b=z)"
    ),
    "logit_cap": Case("logit_cap", "l = linear(x=x, w=W0)\ny = softcap(x=l, cap=3.0)"),
    "linear_add": Case("linear_add", "l = linear(x=x, w=W0)\ny = add(a=x, b=l)"),
    "linear_add-either-way-round": Case(
        "linear_add", "l = linear(x=x, w=W0)\ny = add(a=l, b=x)"
    ),
    "linear_add-biased": Case(
        "linear_add", "l = linear(x=x, w=W0)\nc = add(a=l, b=b)\ny = add(a=x, b=c)"
    ),
    "linear_add-left-by-a-norm": Case(
        "linear_add",
        "l = linear(x=x, w=W0)\ns = add(a=x, b=l)\nn = norm(x=s, w=h, eps=1e-05, unit=16)\n"
        "y = add(a=s, b=n)",
    ),
    "rope_parts": Case("rope_parts", BOTH + attend(query="r")),
    "rope_parts-looks-through-a-set": Case(
        "rope_parts", BOTH + attend(query="r"), options={"held": ("rope_set",)}
    ),
    "gemv_parts": Case("gemv_parts", TWO + "y = mul(a=l, b=m)"),
    "gemv_parts-three": Case(
        "gemv_parts", TWO + "k = linear(x=x, w=W2)\nz = mul(a=l, b=m)\ny = mul(a=z, b=k)"
    ),
}  # fmt: skip

HOLDS = {
    "linear_bias reader": Case(
        "linear_bias",
        "l = linear(x=x, w=W0)\nz = add(a=l, b=b)\ny = add(a=l, b=z)",
        reason="reader",
    ),
    "linear_bias escape": Case(
        "linear_bias",
        "l = linear(x=x, w=W0)\ny = add(a=l, b=b)",
        reason="escape",
        outputs="logits, next, l",
    ),
    "linear_bias shim": Case(
        "linear_bias",
        "l = linear(x=x, w=W0)\ny = add(a=l, b=b)",
        reason="shim",
        options={"shim": without("linear_q8_0_b")},
    ),
    "logit_cap reader": Case(
        "logit_cap",
        "l = linear(x=x, w=W0)\nz = softcap(x=l, cap=3.0)\ny = add(a=l, b=z)",
        reason="reader",
        options={"held": ("linear_add",)},
    ),
    "logit_cap escape": Case(
        "logit_cap",
        "l = linear(x=x, w=W0)\ny = softcap(x=l, cap=3.0)",
        reason="escape",
        outputs="logits, next, l",
    ),
    "logit_cap shape": Case(
        "logit_cap",
        "l = linear(x=x, w=W0)\nc = add(a=l, b=b)\ny = softcap(x=c, cap=3.0)",
        reason="shape",
    ),
    "logit_cap shim": Case(
        "logit_cap",
        "l = linear(x=x, w=W0)\ny = softcap(x=l, cap=3.0)",
        reason="shim",
        options={"shim": without("linear_q8_0_cap")},
    ),
    "linear_add reader": Case(
        "linear_add",
        "l = linear(x=x, w=W0)\nz = mul(a=x, b=l)\ny = add(a=z, b=l)",
        reason="reader",
    ),
    "linear_add escape": Case(
        "linear_add",
        "l = linear(x=x, w=W0)\ny = add(a=x, b=l)",
        reason="escape",
        outputs="logits, next, l",
    ),
    "linear_add version": Case(
        "linear_add",
        f"S@1 = set(table=S, x=x, {FIRST})\nl = linear(x=S@1, w=W0)\n"
        f"S@2 = set(table=S@1, x=x, {FIRST})\ny = add(a=S@2, b=l)",
        reason="version",
    ),
    "linear_add shim": Case(
        "linear_add",
        "l = linear(x=x, w=W0)\ny = add(a=x, b=l)",
        reason="shim",
        options={"shim": without("linear_q8_0_add")},
    ),
    "glu reader": Case("glu", GLU + "z = mul(a=s, b=u)\ny = add(a=z, b=u)", reason="reader"),
    "glu escape": Case(
        "glu", GLU + "y = mul(a=s, b=u)", reason="escape", outputs="logits, next, s"
    ),
    "glu version": Case(
        "glu",
        f"S@1 = set(table=S, x=x, {FIRST})\ng = linear(x=S@1, w=W0)\ns = act(x=g, fn=silu)\n"
        f"S@2 = set(table=S@1, x=x, {FIRST})\nu = linear(x=S@2, w=W1)\ny = mul(a=s, b=u)",
        reason="version",
    ),
    "glu same_x": Case(
        "glu",
        "p = linear(x=x, w=W2)\ng = linear(x=x, w=W0)\nu = linear(x=p, w=W1)\n"
        "s = act(x=g, fn=silu)\ny = mul(a=s, b=u)",
        reason="same_x",
    ),
    "glu format": Case("glu", GLU.replace("W1", "Q4") + "y = mul(a=s, b=u)", reason="format"),
    "glu shape": Case(
        "glu",
        GLU.replace("s = act(x=g,", "c = add(a=g, b=b)\ns = act(x=c,") + "y = mul(a=s, b=u)",
        reason="shape",
    ),
    "glu shim": Case(
        "glu", GLU + "y = mul(a=s, b=u)", reason="shim", options={"shim": without("glu")}
    ),
    "qk_norm_rope reader": Case("qk_norm_rope", TURNED + "y = add(a=n, b=r)", reason="reader"),
    "qk_norm_rope escape": Case(
        "qk_norm_rope", TURNED, out="r", reason="escape", outputs="logits, next, n"
    ),
    "qk_norm_rope shape": Case(
        "qk_norm_rope", TURNED.replace("w=h", "w=w").replace("unit=16", "unit=64"), out="r",
        reason="shape",
    ),
    "qk_norm_rope shim": Case(
        "qk_norm_rope", TURNED, out="r", reason="shim", options={"shim": without("rope_n")}
    ),
    "rope_set reader": Case("rope_set", KEYS + attend(query="r"), reason="reader"),
    "rope_set escape": Case(
        "rope_set", KEYS + attend(), reason="escape", outputs="logits, next, r"
    ),
    "rope_set version": Case(
        "rope_set",
        f"{VALUES}\nS@1 = set(table=S, x=x, {FIRST})\nr = rope(x=S@1, {HEADS})\n"
        f"S@2 = set(table=S@1, x=x, {FIRST})\nK@1 = set(table=K, x=S@2, {AT})\n"
        f"K@2 = set(table=K@1, x=r, {AT})\n" + attend("K@2"),
        reason="version",
    ),
    "rope_set shim": Case(
        "rope_set", KEYS + attend(), reason="shim", options={"shim": without("rope_rows")}
    ),
    "linear_set reader": Case("linear_set", ROWS + attend(query="v"), reason="reader"),
    "linear_set escape": Case(
        "linear_set", ROWS + attend(), reason="escape", outputs="logits, next, v"
    ),
    "linear_set version": Case(
        "linear_set",
        f"{VALUES}\nS@1 = set(table=S, x=x, {FIRST})\nv = linear(x=S@1, w=W0)\n"
        f"S@2 = set(table=S@1, x=x, {FIRST})\nK@1 = set(table=K, x=S@2, {AT})\n"
        f"K@2 = set(table=K@1, x=v, {AT})\n" + attend("K@2"),
        reason="version",
    ),
    "linear_set shim": Case(
        "linear_set", ROWS + attend(), reason="shim",
        options={"shim": without("linear_q8_0_rows")},
    ),
    "attention_set reader": Case(
        "attention_set",
        ATTENDED + f"S@1 = set(table=S, x=a, {FIRST})\ny = add(a=a, b=S@1)",
        reason="reader",
    ),
    "attention_set escape": Case(
        "attention_set",
        ATTENDED + f"S@1 = set(table=S, x=a, {FIRST})",
        out="S@1",
        reason="escape",
        outputs="logits, next, a",
    ),
    "attention_set version": Case(
        "attention_set",
        f"{CACHES}S@1 = set(table=S, x=x, {FIRST})\na = attention(q=S@1, k=K@1, v=V@1, {ATTEND})\n"
        f"S@2 = set(table=S@1, x=x, {FIRST})\nS@3 = set(table=S@2, x=a, {FIRST})",
        out="S@3",
        reason="version",
    ),
    "attention_set shim": Case(
        "attention_set", ATTENDED + f"V@2 = set(table=V@1, x=a, {AT})", out="x", reason="shim"
    ),
    "residual_norm shape": Case(
        "residual_norm", SUM.replace("w=w", "w=h").replace("unit=64", "unit=16"), out="n",
        reason="shape",
    ),
    "residual_norm shim": Case(
        "residual_norm", SUM, out="n", reason="shim", options={"shim": without("add_norm")}
    ),
    "rope_parts convex": Case(
        "rope_parts",
        f"{PAIR}m = linear(x=r, w=W1)\nk = rope(x=m, {HEADS})\n{VALUES}\n"
        f"K@1 = set(table=K, x=k, {AT})\n" + attend(query="r"),
        reason="convex",
    ),
    "rope_parts version": Case(
        "rope_parts",
        f"{VALUES}\nS@1 = set(table=S, x=x, {FIRST})\nr = rope(x=S@1, {HEADS})\n"
        f"S@2 = set(table=S@1, x=x, {FIRST})\nk = rope(x=S@2, {HEADS})\n"
        f"K@1 = set(table=K, x=k, {AT})\n" + attend(query="r"),
        reason="version",
    ),
    "rope_parts shim": Case(
        "rope_parts", BOTH + attend(query="r"), reason="shim",
        options={"shim": without("rope_parts")},
    ),
    "gemv_parts convex": Case(
        "gemv_parts",
        f"{VALUES}\nl = linear(x=x, w=W0)\ns = act(x=l, fn=silu)\nK@1 = set(table=K, x=s, {AT})\n"
        f"m = linear(x=x, w=W1)\nK@2 = set(table=K@1, x=m, {AT})\n" + attend("K@2"),
        reason="convex",
    ),
    "gemv_parts version": Case(
        "gemv_parts",
        f"{VALUES}\nS@1 = set(table=S, x=x, {FIRST})\nl = linear(x=x, w=W0)\n"
        f"n = mul(a=l, b=S@1)\nS@2 = set(table=S@1, x=x, {FIRST})\n"
        f"K@1 = set(table=K, x=S@2, {AT})\nm = linear(x=x, w=W1)\n"
        f"K@2 = set(table=K@1, x=m, {AT})\n" + attend("K@2", query="n"),
        reason="version",
    ),
    "gemv_parts rows": Case("gemv_parts", TWO + "y = mul(a=l, b=m)", reason="shim", rows=9),
    "gemv_parts format": Case(
        "gemv_parts",
        TWO.replace("W1", "F16") + "y = mul(a=l, b=m)",
        reason="format",
        numerics="quantized",
    ),
    "gemv_parts shim": Case(
        "gemv_parts", TWO.replace("W1", "Q4") + "y = mul(a=l, b=m)", reason="shim"
    ),
}  # fmt: skip
