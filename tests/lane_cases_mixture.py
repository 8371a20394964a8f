"""Rules of mixtures of experts: a graph each fires on, and one for each way it must not."""

from lane_cases import AGAIN, ONCE, Case
from lane_graphs import without

ROUTED = (
    "l = linear(x=x, w=R)\np = score(x=l, fn=softmax)\nids = topk(x=p, k=2, bias=r4)\n"
    "ws = renorm(x=p, ids=ids, normalise=true, factor=2.0)\n"
)
INWARD = (
    "g = xlinear(x=x, ids=ids, w=XG, experts=4)\nu = xlinear(x=x, ids=ids, w=XU, experts=4)\n"
    "s = act(x=g, fn=silu)\nm = mul(a=s, b=u)\n"
)
DOWN = "d = xlinear(x=m, ids=ids, w=XD, experts=4)\n"
EXPERTS = f"{ROUTED}{INWARD}{DOWN}"
MIXED = f"{EXPERTS}y = xsum(x=d, w=ws)"
NETWORK = (
    "sg = linear(x=x, w=HK)\nsu = linear(x=x, w=HK)\nsa = act(x=sg, fn=silu)\n"
    "sm = mul(a=sa, b=su)\nsd = linear(x=sm, w=HV)\n"
)
SHARED = f"{EXPERTS}e = xsum(x=d, w=ws)\n{NETWORK}y = add(a=e, b=sd)"
GATE = "sl = linear(x=x, w=SG)\nsh = act(x=sl, fn=sigmoid)\nsw = xsum(x=sd, w=sh)\n"
WEIGHED = SHARED.replace("y = add(a=e, b=sd)", f"{GATE}y = add(a=e, b=sw)")
OTHER = "o = linear(x=x, w=W0)\n"

FIRES = {
    "route": Case("route", MIXED),
    "route-of-groups": Case(
        "route", MIXED.replace("k=2, bias=r4", "k=1, groups=2, group_k=1, group_best=2")
    ),
    "expert_glu": Case("expert_glu", MIXED),
    "expert_glu-either-way-round": Case("expert_glu", MIXED.replace("a=s, b=u", "a=u, b=s")),
    "expert_sum": Case("expert_sum", MIXED, rows=3),
    "shared_expert": Case("shared_expert", SHARED),
    "shared_expert-weighed": Case("shared_expert", WEIGHED, rows=3),
    "shared_expert-either-way-round": Case(
        "shared_expert", WEIGHED.replace("add(a=e, b=sw)", "add(a=sw, b=e)")
    ),
}  # fmt: skip

HOLDS = {
    "route reader": Case(
        "route",
        MIXED.replace("y =", "z =") + "\nq = xsum(x=d, w=ids.s)\ny = add(a=z, b=q)".replace(
            "ids.s", "t"
        ).replace("\nq", "\nt = renorm(x=p, ids=ids, normalise=false)\nq"),
        reason="reader",
    ),
    "route escape": Case("route", MIXED, reason="escape", outputs="logits, next, p"),
    "route shape": Case(
        "route",
        MIXED.replace("l = linear(x=x, w=R)", "i = linear(x=x, w=R)\nl = add(a=i, b=r4)"),
        reason="shape",
    ),
    "route shim": Case("route", MIXED, reason="shim", options={"shim": without("route_f32_b")}),
    "expert_glu reader": Case(
        "expert_glu",
        MIXED.replace(DOWN, f"n = mul(a=m, b=u)\n{DOWN.replace('x=m', 'x=n')}"),
        reason="reader",
    ),
    "expert_glu escape": Case("expert_glu", MIXED, reason="escape", outputs="logits, next, s"),
    "expert_glu version": Case(
        "expert_glu",
        f"{ROUTED}{ONCE}"
        + INWARD.replace("g = xlinear(x=x", "g = xlinear(x=S@1").replace(
            "u = xlinear(x=x", f"{AGAIN}u = xlinear(x=S@2"
        )
        + f"{DOWN}y = xsum(x=d, w=ws)",
        reason="version",
    ),
    "expert_glu same_x": Case(
        "expert_glu",
        OTHER + MIXED.replace("u = xlinear(x=x", "u = xlinear(x=o"),
        reason="same_x",
    ),
    "expert_glu format": Case("expert_glu", MIXED.replace("w=XU", "w=X4"), reason="format"),
    "expert_glu shim": Case(
        "expert_glu", MIXED, reason="shim", options={"shim": without("xglu_q8_0")}
    ),
    "expert_sum reader": Case(
        "expert_sum",
        MIXED.replace("y =", "z =") + "\nq = xsum(x=d, w=ws)\ny = add(a=z, b=q)",
        reason="reader",
    ),
    "expert_sum escape": Case("expert_sum", MIXED, reason="escape", outputs="logits, next, d"),
    "expert_sum version": Case(
        "expert_sum",
        f"{ROUTED}{ONCE}d = xlinear(x=S@1, ids=ids, w=XG, experts=4)\n{AGAIN}"
        "l2 = linear(x=S@2, w=R)\nv = part(x=l2, pitch=4, offset=0, width=2, units=1)\n"
        "e = xsum(x=d, w=v)\ny = concat(a=e, b=e, units=1)",
        reason="version",
    ),
    "expert_sum shim": Case(
        "expert_sum", MIXED, reason="shim", options={"shim": without("xdown_q8_0")}
    ),
    "shared_expert reader": Case(
        "shared_expert", SHARED.replace("y =", "z =") + "\ny = add(a=z, b=sd)", reason="reader"
    ),
    "shared_expert escape": Case(
        "shared_expert", SHARED, reason="escape", outputs="logits, next, e"
    ),
    "shared_expert version": Case(
        "shared_expert",
        f"{ROUTED}{ONCE}"
        + f"{INWARD}{DOWN}e = xsum(x=d, w=ws)\n".replace("x=x", "x=S@1")
        + AGAIN
        + NETWORK.replace("x=x", "x=S@2")
        + "y = add(a=e, b=sd)",
        reason="version",
    ),
    "shared_expert same_x": Case(
        "shared_expert", OTHER + SHARED.replace(NETWORK, NETWORK.replace("x=x", "x=o")),
        reason="same_x",
    ),
    "shared_expert format": Case(
        "shared_expert", WEIGHED.replace("w=SG", "w=SQ"), reason="format"
    ),
    "shared_expert shape": Case(
        "shared_expert",
        SHARED.replace("sd = linear(x=sm, w=HV)", "si = linear(x=sm, w=HV)\nsd = add(a=si, b=b)"),
        reason="shape",
    ),
    "shared_expert shim": Case(
        "shared_expert", SHARED, reason="shim", options={"shim": without("xglu_s_q8_0")}
    ),
}  # fmt: skip
