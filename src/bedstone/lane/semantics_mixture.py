"""What the launches of a mixture of experts compute, in terms."""

from collections.abc import Iterator

from bedstone.lane.launch import (
    Dst,
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    Matrix,
    Read,
    Renorm,
    Route,
    Routing,
    Score,
    SharedIn,
    SharedOut,
    Stack,
    TopK,
    WeightedSum,
)
from bedstone.lane.machine import Machine
from bedstone.lane.terms import Size, Term

Writes = Iterator[tuple[Dst, Term]]


def score(launch: Score, run: Machine) -> Writes:
    """Scores of logits."""
    yield launch.dst, _score(launch.fn, run.read(launch.x), (launch.rows, launch.experts), run)


def _score(fn: str, x: Term, size: Size, run: Machine) -> Term:
    return run.compute(run.terms.of("score", fn, size, x))


def topk(launch: TopK, run: Machine) -> Writes:
    """The choice of experts."""
    yield launch.dst, _chosen(run.read(launch.x), launch.routing, launch.rows, run)


def _chosen(x: Term, how: Routing, rows: int, run: Machine) -> Term:
    groups = (how.groups, how.group_k, how.group_best)
    attributes = ((rows, how.experts), how.chosen, groups, how.bias)
    return run.compute(run.terms.of("topk", *attributes, x))


def renorm(launch: Renorm, run: Machine) -> Writes:
    """The weights of the chosen experts."""
    size = (launch.rows, launch.experts)
    attributes = (size, launch.chosen, launch.normalise, launch.factor)
    operands = (run.read(launch.x), run.read(launch.ids))
    yield launch.dst, run.compute(run.terms.of("renorm", *attributes, *operands))


def route(launch: Route, run: Machine) -> Writes:
    """A router's product, scores, choice and weights."""
    how, rows = launch.routing, launch.rows
    logits = _linear(run.factor(launch.x, launch.m), launch.m, rows, run)
    scores = _score(launch.fn, logits, (rows, how.experts), run)
    ids = _chosen(scores, how, rows, run)
    yield launch.ids, ids
    attributes = ((rows, how.experts), how.chosen, launch.normalise, launch.factor)
    yield launch.dst, run.compute(run.terms.of("renorm", *attributes, scores, ids))


def _linear(x: Term, m: Matrix, rows: int, run: Machine) -> Term:
    return run.compute(run.terms.linear(x, m, rows, None))


def expert_product(launch: ExpertProduct, run: Machine) -> Writes:
    """The products of the chosen experts."""
    x, ids = run.factor(launch.x, launch.m), run.read(launch.ids)
    size = (launch.rows, launch.units * launch.m.k)
    yield launch.dst, _experts(x, ids, launch.m, (size, launch.chosen), run)


def _experts(x: Term, ids: Term, m: Stack, sizes: tuple[Size, int], run: Machine) -> Term:
    return run.compute(run.terms.of("experts", m, sizes, x, ids))


def expert_glu(launch: ExpertGlu, run: Machine) -> Writes:
    """The chosen experts' gated products, and those of the network every row takes."""
    rows, ids = launch.rows, run.read(launch.ids)
    sizes = ((rows, launch.gate.k), launch.chosen)
    gate, up = (
        _experts(run.factor(launch.x, m), ids, m, sizes, run) for m in (launch.gate, launch.up)
    )
    size = (rows, launch.chosen * launch.gate.n)
    act = run.compute(run.terms.map(launch.act, None, gate, size))
    yield launch.dst, run.compute(run.terms.pair("mul", act, up, size))
    if launch.shared is not None:
        yield from _shared_in(launch, launch.shared, run)


def _shared_in(launch: ExpertGlu, shared: SharedIn, run: Machine) -> Writes:
    rows, size = launch.rows, (launch.rows, shared.gate.n)
    gate, up = (_linear(run.factor(launch.x, m), m, rows, run) for m in (shared.gate, shared.up))
    act = run.compute(run.terms.map(launch.act, None, gate, size))
    yield shared.dst, run.compute(run.terms.pair("mul", act, up, size))
    if shared.x is not None and shared.w is not None and shared.share is not None:
        share = _share(shared.x, shared.w, rows, run)
        yield shared.share, share


def _share(x: Read, w: str, rows: int, run: Machine) -> Term:
    """The sigmoid of a product by a matrix of one row, whose values are read as they are."""
    const = run.facts.graph.consts.get(w)
    row = const is not None and len(const.shape) == 2 and const.shape[0] == 1
    run.require(row, f"`{w}` is no matrix of one row")
    m = run.facts.matrix(w)
    run.require(not run.facts.reads_quant(m, x.tensor), f"`{w}` takes quantized rows")
    logit = _linear(run.read(x), m, rows, run)
    return run.compute(run.terms.map("sigmoid", None, logit, (rows, 1)))


def expert_sum(launch: ExpertSum, run: Machine) -> Writes:
    """The chosen experts' products, summed; then those of the network every row takes."""
    rows, m = launch.rows, launch.m
    sizes = ((rows, launch.chosen * m.k), launch.chosen)
    products = _experts(run.factor(launch.x, m), run.read(launch.ids), m, sizes, run)
    total = _weighted(
        products, run.read(launch.weights), (rows, launch.chosen * m.n), launch.chosen, run
    )
    if launch.shared is not None:
        beside = _shared_out(launch.shared, rows, run)
        total = run.compute(run.terms.pair("add", total, beside, (rows, m.n)))
    yield launch.dst, total


def _shared_out(shared: SharedOut, rows: int, run: Machine) -> Term:
    made = _linear(run.factor(shared.x, shared.m), shared.m, rows, run)
    if shared.share is None:
        return made
    return _weighted(made, run.read(shared.share), (rows, shared.m.n), 1, run)


def _weighted(x: Term, weights: Term, size: Size, chosen: int, run: Machine) -> Term:
    return run.compute(run.terms.of("weighted", (size, chosen), x, weights))


def weighted_sum(launch: WeightedSum, run: Machine) -> Writes:
    """The weighted sum of each row's units."""
    size = (launch.rows, launch.chosen * launch.width)
    x, weights = run.read(launch.x), run.read(launch.weights)
    yield launch.dst, _weighted(x, weights, size, launch.chosen, run)
