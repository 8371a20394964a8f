"""Links of a mixture of experts."""

from bedstone.graph import step
from bedstone.lane import classes, launch
from bedstone.lane.destination import factor
from bedstone.lane.facts import Facts
from bedstone.lane.launch import Dst, OneLaunch, Read, Routing, SharedIn, SharedOut, ToBuf


def score(op: step.Score, dst: ToBuf, facts: Facts) -> OneLaunch:
    """Scores of a router's logits."""
    return launch.Score(Read(op.x), op.fn, facts.rows(op.x), facts.width(op.x), dst)


def topk(op: step.TopK, dst: ToBuf, facts: Facts) -> OneLaunch:
    """The choice of experts."""
    routing = Routing(facts.width(op.x), op.k, op.groups, op.group_k, op.group_best, op.bias)
    return launch.TopK(Read(op.x), routing, facts.rows(op.x), dst)


def renorm(op: step.Renorm, dst: ToBuf, facts: Facts) -> OneLaunch:
    """The weights of the chosen experts."""
    sizes = (facts.rows(op.x), facts.width(op.x), facts.width(op.ids))
    return launch.Renorm(Read(op.x), Read(op.ids), *sizes, op.normalise, op.factor, dst)


def routed(op: classes.Routed, dst: ToBuf, facts: Facts) -> OneLaunch:
    """A router."""
    m = facts.matrix(op.w)
    routing = Routing(m.n, op.k, op.groups, op.group_k, op.group_best, op.bias)
    return launch.Route(
        factor(op.x, m, facts),
        m,
        op.fn,
        routing,
        op.normalise,
        op.factor,
        facts.rows(op.x),
        ToBuf(op.ids),
        dst,
    )


def expert_product(op: step.XLinear, dst: Dst, facts: Facts) -> OneLaunch:
    """The products of the chosen experts."""
    m, chosen = facts.stack(op.w), facts.width(op.ids)
    units = facts.width(op.x) // m.k
    x = factor(op.x, m, facts)
    return launch.ExpertProduct(x, Read(op.ids), m, facts.rows(op.x), chosen, units, dst)


def weighted_sum(op: step.XSum, dst: ToBuf, facts: Facts) -> OneLaunch:
    """The weighted sum of each row's units."""
    chosen = facts.width(op.w)
    sizes = (facts.rows(op.x), chosen, facts.width(op.x) // chosen)
    return launch.WeightedSum(Read(op.x), Read(op.w), *sizes, dst)


def expert_glu(op: classes.ExpertGlu, dst: Dst, facts: Facts) -> OneLaunch:
    """The chosen experts' gated products."""
    return _inward(op, dst, None, facts)


def _inward(op: classes.ExpertGlu, dst: Dst, shared: SharedIn | None, facts: Facts) -> OneLaunch:
    gate, up = facts.stack(op.gate), facts.stack(op.up)
    x, rows, chosen = factor(op.x, gate, facts), facts.rows(op.x), facts.width(op.ids)
    return launch.ExpertGlu(x, Read(op.ids), gate, up, op.fn, rows, chosen, dst, shared)


def expert_sum(op: classes.ExpertSum, dst: Dst, facts: Facts) -> OneLaunch:
    """The chosen experts' products, summed."""
    m = facts.stack(op.w)
    x, weights = factor(op.x, m, facts), Read(op.weights)
    rows, chosen = facts.rows(op.x), facts.width(op.ids)
    return launch.ExpertSum(x, Read(op.ids), weights, m, rows, chosen, dst)


def mixture(op: classes.Mixture, facts: Facts) -> tuple[OneLaunch, ...]:
    """The experts and the shared network: in, then out."""
    shared = SharedIn(
        facts.matrix(op.shared.gate), facts.matrix(op.shared.up), ToBuf(op.shared.out)
    )
    share = None
    if op.gate is not None:
        gated = (Read(op.glu.x), op.gate.w, ToBuf(op.gate.out))
        shared = SharedIn(shared.gate, shared.up, shared.dst, *gated)
        share = Read(op.gate.out)
    m, down = facts.stack(op.w), facts.matrix(op.down)
    outward = launch.ExpertSum(
        factor(op.glu.out, m, facts),
        Read(op.glu.ids),
        Read(op.weights),
        m,
        facts.rows(op.glu.x),
        facts.width(op.glu.ids),
        ToBuf(op.out),
        SharedOut(factor(op.shared.out, down, facts), down, share),
    )
    return _inward(op.glu, ToBuf(op.glu.out), shared, facts), outward
