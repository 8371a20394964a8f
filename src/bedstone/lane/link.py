"""Links: the launches each op that the optimizer leaves takes.

`link` is total over what a checked graph becomes: every op of a step and every fused class.
Results are first linked to be written as f32; which forms they really take is decided once all
their readers are known.
"""

from collections.abc import Callable
from typing import Any

from bedstone.graph import step
from bedstone.lane import classes, link_dense, link_heads, link_mixture, link_recurrent
from bedstone.lane.classes import Into, LaneOp, gates_batch_rows, plain
from bedstone.lane.destination import destination
from bedstone.lane.facts import Facts
from bedstone.lane.launch import OneLaunch


def link(op: LaneOp, facts: Facts) -> tuple[OneLaunch, ...]:
    """The launches of `op`, in order."""
    if gates_batch_rows(op):
        return link_heads.gated_rows(op, facts)
    if isinstance(op, classes.Mixture):
        return link_mixture.mixture(op, facts)
    return (_whole(op, facts),)


def _whole(op: LaneOp, facts: Facts) -> OneLaunch:
    """The one launch of an op that has one."""
    match op:
        case classes.Ropes(sides=sides):
            launch = link_heads.rope(sides, facts)
        case classes.Linears(parts=parts):
            launch = link_dense.parts(parts, facts)
        case classes.Convs(parts=parts):
            launch = link_recurrent.convs(parts, facts)
        case step.Rope() | classes.NormRope() | Into(op=step.Rope() | classes.NormRope()):
            launch = link_heads.rope((op,), facts)
        case step.Conv() | classes.Convolved():
            launch = link_recurrent.convs((op,), facts)
        case _:
            made = plain(op)
            launch = _LINKS[type(made)](made, destination(op, facts), facts)
    return launch


def shares(op: LaneOp, sources: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The graph ops that each launch of `op` computes; `sources` are those of all."""
    if gates_batch_rows(op):
        *rows, last = op.sources
        first = {i for row in rows for i in row}
        return (*rows, tuple(i for i in sources if i not in first or i in last))
    if isinstance(op, classes.Mixture):
        return op.inward, tuple(i for i in sources if i not in set(op.inward))
    return (sources,)


_LINKS: dict[type, Callable[[Any, Any, Facts], OneLaunch]] = {
    step.Embed: link_dense.embed,
    classes.ScaledEmbed: link_dense.scaled_embed,
    step.Norm: link_dense.norm,
    step.L2Norm: link_dense.l2norm,
    classes.AddNorm: link_dense.add_norm,
    classes.GatedNorm: link_dense.gated_norm,
    step.Linear: link_dense.linear,
    classes.AddedLinear: link_dense.added,
    classes.CappedLinear: link_dense.capped,
    classes.Glu: link_dense.glu,
    step.Add: link_dense.pair,
    step.Mul: link_dense.pair,
    step.Act: link_dense.mapped,
    step.Scale: link_dense.mapped,
    step.Softcap: link_dense.mapped,
    step.ArgMax: link_dense.argmax,
    step.Sample: link_dense.sample,
    step.Finish: link_dense.finish,
    step.Row: link_dense.row,
    step.Part: link_dense.part,
    step.Concat: link_dense.concat,
    step.Set: link_dense.set_rows,
    step.Attention: link_heads.attention,
    classes.Attended: link_heads.attended,
    step.HLinear: link_heads.head_product,
    step.Score: link_mixture.score,
    step.TopK: link_mixture.topk,
    step.Renorm: link_mixture.renorm,
    step.XLinear: link_mixture.expert_product,
    step.XSum: link_mixture.weighted_sum,
    classes.Routed: link_mixture.routed,
    classes.ExpertGlu: link_mixture.expert_glu,
    classes.ExpertSum: link_mixture.expert_sum,
    step.Decay: link_recurrent.decay,
    step.Delta: link_recurrent.delta,
    classes.GatedDelta: link_recurrent.gated_delta,
}
