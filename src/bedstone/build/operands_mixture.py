"""The parameters of the kernels of a mixture of experts."""

from bedstone.build.bind import ACT_CODE, read, sizes, values, write
from bedstone.build.operand import Count, Operands, Values, Vector, Weight
from bedstone.lane.launch import (
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    Renorm,
    Route,
    Routing,
    Score,
    SharedIn,
    SharedOut,
    TopK,
    WeightedSum,
)

_FN_CODE = {"softmax": 0, "sigmoid": 1}


def score(launch: Score) -> Operands:
    """Scores of logits."""
    return {
        **read(launch.x),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(experts=launch.experts, fn=_FN_CODE[launch.fn]),
    }


def topk(launch: TopK) -> Operands:
    """The choice of experts."""
    return {
        **read(launch.x),
        "ids": Values(launch.dst.tensor),
        "rows": Count(launch.rows),
        **_routing(launch.routing),
    }


def _routing(how: Routing) -> Operands:
    bias: Operands = {} if how.bias is None else {"bias": Vector(how.bias)}
    return bias | sizes(
        experts=how.experts,
        chosen=how.chosen,
        groups=how.groups,
        group_k=how.group_k,
        group_best=how.group_best,
    )


def renorm(launch: Renorm) -> Operands:
    """The weights of the chosen experts."""
    return {
        **read(launch.x),
        "ids": values(launch.ids),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(
            experts=launch.experts,
            chosen=launch.chosen,
            normalise=launch.normalise,
            factor=float(launch.factor),
        ),
    }


def route(launch: Route) -> Operands:
    """A router's product, scores, choice and weights."""
    return {
        **read(launch.x),
        "w": Weight(launch.m.const),
        "ids": Values(launch.ids.tensor),
        "weights": Values(launch.dst.tensor),
        "rows": Count(launch.rows),
        **_routing(launch.routing),
        **sizes(
            k=launch.m.k,
            fn=_FN_CODE[launch.fn],
            normalise=launch.normalise,
            factor=float(launch.factor),
        ),
    }


def expert_product(launch: ExpertProduct) -> Operands:
    """The products of the chosen experts."""
    return {
        **read(launch.x),
        "ids": values(launch.ids),
        "w": Weight(launch.m.const),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(chosen=launch.chosen, units=launch.units, k=launch.m.k, n=launch.m.n),
    }


def expert_glu(launch: ExpertGlu) -> Operands:
    """The chosen experts' gated products, and those of the network every row takes."""
    return {
        **read(launch.x),
        "ids": values(launch.ids),
        "wg": Weight(launch.gate.const),
        "wu": Weight(launch.up.const),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(chosen=launch.chosen, k=launch.gate.k, n=launch.gate.n, act=ACT_CODE[launch.act]),
        **({} if launch.shared is None else _shared_in(launch.shared)),
    }


def _shared_in(shared: SharedIn) -> Operands:
    out: Operands = {
        "sg": Weight(shared.gate.const),
        "su": Weight(shared.up.const),
        **write(shared.dst, name="z"),
        **sizes(sn=shared.gate.n),
    }
    if shared.x is not None and shared.w is not None and shared.share is not None:
        share = Values(shared.share.tensor)
        out |= {"gx": values(shared.x), "gw": Vector(shared.w), "share": share}
    return out


def expert_sum(launch: ExpertSum) -> Operands:
    """The chosen experts' products, summed."""
    return {
        **read(launch.x),
        "ids": values(launch.ids),
        "weights": values(launch.weights),
        "w": Weight(launch.m.const),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(chosen=launch.chosen, k=launch.m.k, n=launch.m.n),
        **({} if launch.shared is None else _shared_out(launch.shared)),
    }


def _shared_out(shared: SharedOut) -> Operands:
    form = read(shared.x, "z") if shared.x.form == "quant" else {"zx": values(shared.x)}
    share: Operands = {} if shared.share is None else {"share": values(shared.share)}
    return {**form, "sw": Weight(shared.m.const), **share, **sizes(sn=shared.m.k)}


def weighted_sum(launch: WeightedSum) -> Operands:
    """The weighted sum of each row's units."""
    return {
        **read(launch.x),
        "w": values(launch.weights),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(chosen=launch.chosen, n=launch.width),
    }
