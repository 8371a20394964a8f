"""What the rules on mixtures of experts form."""

from bedstone.graph.step import Act, Add, Linear, Mul, Renorm, Score, TopK, XLinear, XSum
from bedstone.lane.classes import ExpertGlu, ExpertSum, Glu, LaneOp, Mixture, Routed, ShareGate
from bedstone.lane.join import gate_fn
from bedstone.lane.pattern import Match


def routed(match: Match) -> LaneOp:
    """The router's product, scores, choice and weights."""
    linear, score = match.op("linear", Linear), match.op("score", Score)
    topk, renorm = match.op("topk", TopK), match.op("renorm", Renorm)
    return Routed(
        linear.x,
        linear.w,
        score.fn,
        topk.bias,
        topk.out,
        renorm.out,
        topk.k,
        topk.groups,
        topk.group_k,
        topk.group_best,
        renorm.normalise,
        renorm.factor,
    )


def expert_gated(match: Match) -> LaneOp:
    """The chosen experts' products, the activation and their product as one."""
    gate, up = match.op("gate", XLinear), match.op("up", XLinear)
    fn, out = gate_fn(match.op("act", Act)), match.op("mul", Mul).out
    return ExpertGlu(gate.x, gate.ids, gate.w, up.w, out, fn)


def expert_sum(match: Match) -> LaneOp:
    """The chosen experts' products, weighted and summed."""
    down, total = match.op("down", XLinear), match.op("sum", XSum)
    return ExpertSum(down.x, down.ids, down.w, total.w, total.out)


def mixture(match: Match) -> LaneOp:
    """The experts and the network that every row takes."""
    glu, shared = match.op("experts", ExpertGlu), match.op("shared", Glu)
    total, gate = match.op("sum", ExpertSum), None
    if "gate" in match.roles:
        gate = ShareGate(match.op("gate", Linear).w, match.op("share", Act).out)
    return Mixture(
        glu,
        shared,
        gate,
        total.w,
        total.weights,
        match.op("down", Linear).w,
        match.op("add", Add).out,
        match.sources("experts", "shared", "gate", "share"),
    )
