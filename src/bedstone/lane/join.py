"""What the rules of the table form: for each, the fused class made from the ops of a match."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from bedstone.graph.refs import rename
from bedstone.graph.step import (
    Act,
    Add,
    Attention,
    Concat,
    Conv,
    Decay,
    Delta,
    Embed,
    L2Norm,
    Linear,
    Mul,
    Norm,
    Out,
    Part,
    Rope,
    Scale,
    Set,
    Softcap,
)
from bedstone.lane.classes import (
    AddedLinear,
    AddNorm,
    Attended,
    CappedLinear,
    Convolved,
    Convs,
    GatedDelta,
    GatedNorm,
    GatedRows,
    GateFn,
    Glu,
    Into,
    IntoEach,
    KeySplit,
    LaneOp,
    Linears,
    NormRope,
    Placed,
    PreNormed,
    QuerySplit,
    Ropes,
    ScaledEmbed,
    Side,
    attention_of,
    plain,
)
from bedstone.lane.classes import Part as ProductPart
from bedstone.lane.pattern import Match

T = TypeVar("T")


def scaled_embed(match: Match) -> LaneOp:
    """The embedded rows, scaled."""
    embed, scale = match.op("embed", Embed), match.op("scale", Scale)
    return ScaledEmbed(replace(embed, out=scale.out), scale.by)


def biased(match: Match) -> LaneOp:
    """The product with the constant added to it."""
    add = match.op("add", Add)
    return replace(match.op("linear", Linear), bias=add.b, out=add.out)


def added(match: Match) -> LaneOp:
    """The product with the other addend added to it."""
    add, linear = match.op("add", Add), match.op("linear", Linear)
    other = add.a if str(add.b) == str(linear.out) else add.b
    return AddedLinear(replace(linear, out=add.out), other)


def capped(match: Match) -> LaneOp:
    """The product, its values bent to stay within a cap."""
    softcap = match.op("softcap", Softcap)
    return CappedLinear(replace(match.op("linear", Linear), out=softcap.out), softcap.cap)


def gated(match: Match) -> LaneOp:
    """Both products, the activation and their product as one."""
    gate, up = match.op("gate", Linear), match.op("up", Linear)
    return Glu(gate.x, gate.w, up.w, match.op("mul", Mul).out, gate_fn(match.op("act", Act)))


def gate_fn(act: Act) -> GateFn:
    """The activation of a gate."""
    if act.fn not in ("silu", "gelu_tanh"):
        raise TypeError(f"`{act.fn}` is no gate")
    return act.fn


def normed_turn(match: Match) -> LaneOp:
    """The rotation, of heads normed first."""
    norm, rope = match.op("norm", Norm), match.op("rope", Rope)
    return NormRope(norm.w, norm.eps, norm.plus_one, replace(rope, x=norm.x))


def placed(match: Match) -> LaneOp:
    """The op that makes the rows, made to write them where the set would."""
    made = next(op for op in match.ops if isinstance(op, Placed))
    into = match.op("set", Set)
    return Into(rename(made, {made.out: into.out}), into.table, into.at, into.column)


def placed_rows(match: Match) -> LaneOp:
    """The product whose rows go where a set would put them, in one table or in each sequence's."""
    if "set" in match.roles:
        return placed(match)
    linear = match.op("linear", Linear)
    rows = range(match.body.facts.rows(linear.out))
    sets = [match.op(f"set.{row}", Set) for row in rows]
    return IntoEach(
        replace(linear, out=sets[0].out),
        tuple(op.out for op in sets[1:]),
        tuple(op.table for op in sets),
        tuple(op.at for op in sets),
    )


def turns(match: Match) -> LaneOp:
    """The rotations side by side."""
    return Ropes(_table_last(op for op in match.ops if isinstance(op, Side)))


def products(match: Match) -> LaneOp:
    """The products side by side."""
    return Linears(_table_last(op for op in match.ops if isinstance(op, ProductPart)))


def _table_last(members: Iterable[T]) -> tuple[T, ...]:
    """Those that write table rows after those that write buffers."""
    return tuple(sorted(members, key=lambda op: isinstance(op, Into | IntoEach)))


def normed_sum(match: Match) -> LaneOp:
    """The norm of the sum, and the sum."""
    add, norm = match.op("add", Add), match.op("norm", Norm)
    return AddNorm(add.a, add.b, add.out, norm.w, norm.out, norm.eps, norm.plus_one)


def sandwiched(match: Match) -> LaneOp:
    """The norm of a sum whose second addend is normed first."""
    after, pre = match.op("add_norm", AddNorm), match.op("norm", Norm)
    other = after.a if str(after.b) == str(pre.out) else after.b
    return replace(after, a=other, b=pre.x, pre=PreNormed(pre.w, pre.eps, pre.plus_one))


def gated_norm(match: Match) -> LaneOp:
    """The norm of each unit, multiplied by an activation."""
    norm = replace(match.op("norm", Norm), out=match.op("mul", Mul).out)
    return GatedNorm(norm, match.op("act", Act).x)


def gated_attention(match: Match) -> LaneOp:
    """One attention with its gate, or those of a batch with a row of the gate each."""
    gate, out = match.op("act", Act).x, match.op("mul", Mul).out
    if "attention" in match.roles:
        return replace(_attended(match, "attention", out), gate=gate)
    rows = range(sum(role.startswith("row.") for role in match.roles))
    return GatedRows(
        tuple(_attended(match, f"row.{i}", out) for i in rows),
        gate,
        tuple(match.sources(f"row.{i}", f"set.{i}") for i in rows),
    )


def _attended(match: Match, role: str, out: Out) -> Attended:
    """The attention in a role, its result called `out`."""
    op = plain(match.body.nodes[match.roles[role]].op)
    attended = op if isinstance(op, Attended) else Attended(the_attention(op))
    return replace(attended, attention=replace(attended.attention, out=out))


def the_attention(op: LaneOp) -> Attention:
    """The attention that an op is."""
    attention = attention_of(op)
    if attention is None:
        raise TypeError(f"a {type(op).__name__} is no attention")
    return attention


def split_attention(match: Match) -> LaneOp:
    """The attention with the joined queries, or the joined keys, left where they are."""
    concat = match.op("concat", Concat)
    op = match.body.nodes[match.roles["attention"]].op
    attended = op if isinstance(op, Attended) else Attended(the_attention(op))
    own = match.body.facts.width(concat.a) // concat.units
    if "tail" not in match.roles:
        attention = replace(attended.attention, q=concat.a)
        return replace(attended, attention=attention, split=QuerySplit(own, concat.b))
    tail = match.op("tail", Part)
    attention = replace(attended.attention, k=concat.a)
    return replace(attended, attention=attention, split=KeySplit(own, tail.x, tail.offset))


def activated(match: Match) -> LaneOp:
    """The convolution and its activation."""
    act = match.op("act", Act)
    return Convolved(replace(match.op("conv", Conv), out=act.out), act.fn)


def unit_length(match: Match) -> LaneOp:
    """The convolution whose units are brought to unit length."""
    norm, op = match.op("norm", L2Norm), match.body.nodes[match.roles["conv"]].op
    convolved = op if isinstance(op, Convolved) else Convolved(match.op("conv", Conv), None)
    conv = replace(convolved.conv, out=norm.out)
    return replace(convolved, conv=conv, unit=norm.unit, eps=norm.eps)


def convolutions(match: Match) -> LaneOp:
    """The convolutions side by side."""
    return Convs(tuple(op for op in match.ops if isinstance(op, Conv | Convolved)))


def gated_delta(match: Match) -> LaneOp:
    """The delta rule that makes its own gates."""
    delta, decay = match.op("delta", Delta), match.op("decay", Decay)
    made = replace(delta, g=decay.a, beta=match.op("act", Act).x)
    return GatedDelta(made, decay.a_log, decay.dt)
