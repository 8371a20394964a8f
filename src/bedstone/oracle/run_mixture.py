"""The launches of a mixture of experts, in NumPy."""

from bedstone.graph import step
from bedstone.graph.step import Ref
from bedstone.lane.launch import (
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    Read,
    Renorm,
    Route,
    Routing,
    Score,
    SharedIn,
    Stack,
    TopK,
    WeightedSum,
)
from bedstone.oracle import mixture
from bedstone.oracle.arithmetic import ACTIVATIONS, product
from bedstone.oracle.execution import Array, Execution
from bedstone.oracle.run_dense import Writes, X, Y, linear


def score(run: Execution, launch: Score) -> Writes:
    """Scores of logits."""
    yield launch.dst, mixture.score(run.read(launch.x), step.Score(X, Y, launch.fn))


def topk(run: Execution, launch: TopK) -> Writes:
    """The choice of experts."""
    yield launch.dst, _chosen(run, run.read(launch.x), launch.routing)


def _chosen(run: Execution, scores: Array, how: Routing) -> Array:
    bias = None if how.bias is None else run.constants[how.bias]
    op = step.TopK(X, Y, how.chosen, None, how.groups, how.group_k, how.group_best)
    return mixture.topk(scores, bias, op)


def renorm(run: Execution, launch: Renorm) -> Writes:
    """The weights of the chosen experts."""
    scores, ids = run.read(launch.x), run.read(launch.ids)
    yield launch.dst, _weights(scores, ids, launch)


def _weights(scores: Array, ids: Array, launch: Renorm | Route) -> Array:
    op = step.Renorm(X, Ref("ids"), Y, launch.normalise, launch.factor)
    return mixture.renorm(scores, ids, op)


def route(run: Execution, launch: Route) -> Writes:
    """A router's product, scores, choice and weights."""
    logits = linear(run, run.read(launch.x), launch.m)
    scores = mixture.score(logits, step.Score(X, Y, launch.fn))
    ids = _chosen(run, scores, launch.routing)
    yield launch.ids, ids
    yield launch.dst, _weights(scores, ids, launch)


def expert_product(run: Execution, launch: ExpertProduct) -> Writes:
    """The products of the chosen experts."""
    yield launch.dst, _experts(run, launch.x, launch.ids, launch.m)


def _experts(run: Execution, x: Read, ids: Read, m: Stack) -> Array:
    return mixture.xlinear(run.read(x), run.read(ids), run.constants[m.const])


def expert_glu(run: Execution, launch: ExpertGlu) -> Writes:
    """The chosen experts' gated products, and those of the network every row takes."""
    gate, up = (_experts(run, launch.x, launch.ids, m) for m in (launch.gate, launch.up))
    yield launch.dst, ACTIVATIONS[launch.act](gate) * up
    if launch.shared is not None:
        yield from _shared_in(run, launch, launch.shared)


def _shared_in(run: Execution, launch: ExpertGlu, shared: SharedIn) -> Writes:
    x = run.read(launch.x)
    gate, up = linear(run, x, shared.gate), linear(run, x, shared.up)
    yield shared.dst, ACTIVATIONS[launch.act](gate) * up
    if shared.x is not None and shared.w is not None and shared.share is not None:
        logit = product(run.read(shared.x), run.constants[shared.w])
        yield shared.share, ACTIVATIONS["sigmoid"](logit)


def expert_sum(run: Execution, launch: ExpertSum) -> Writes:
    """The chosen experts' products, summed; then those of the network every row takes."""
    products = _experts(run, launch.x, launch.ids, launch.m)
    total = mixture.xsum(products, run.read(launch.weights))
    shared = launch.shared
    if shared is not None:
        beside = linear(run, run.read(shared.x), shared.m)
        if shared.share is not None:
            beside = mixture.xsum(beside, run.read(shared.share))
        total = total + beside
    yield launch.dst, total


def weighted_sum(run: Execution, launch: WeightedSum) -> Writes:
    """The weighted sum of each row's units."""
    yield launch.dst, mixture.xsum(run.read(launch.x), run.read(launch.weights))
