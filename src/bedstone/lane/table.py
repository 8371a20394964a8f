"""The shared fusion table: one row a rule, tried in this order.

A rule joins the ops its pattern finds into a class when every condition it names holds and the
lane has a launch for that class. Nothing outside this table decides a fusion.

Order matters: what a row forms a later row may take in. `rope_set` comes before `rope_parts` so
that a side already knows its cache rows, and `linear_set` before `gemv_parts` for the same reason.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from bedstone.graph.refs import rename
from bedstone.graph.step import Act, Add, Attention, Linear, Mul, Norm, Rope, Set
from bedstone.lane.body import Body
from bedstone.lane.classes import (
    AddNorm,
    Glu,
    Into,
    LaneOp,
    Linears,
    NormRope,
    Part,
    Placed,
    Ropes,
    Side,
    plain,
    turn,
)
from bedstone.lane.legality import (
    CONVEX,
    ESC,
    FMT,
    GEMV,
    NO_BIAS,
    ONE,
    SAME_FORM,
    SAME_X,
    VER,
    WHOLE_HEAD,
    WHOLE_ROW,
    Condition,
)
from bedstone.lane.pattern import Match, Siblings, Tree

T = TypeVar("T")

Numeric = Literal["exact", "order"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    `numeric` says what joining does to the bits: `exact` nothing, `order` sums in another order. No
    rule rounds where the step does not. `exports` are the roles, beside the anchor, whose result
    is kept.
    """

    name: str
    pattern: Tree | Siblings
    legal: tuple[Condition, ...]
    form: Callable[[Match], LaneOp]
    numeric: Numeric = "exact"
    exports: frozenset[str] = frozenset()


def _bias(match: Match) -> LaneOp:
    add = match.op("add", Add)
    return replace(match.op("linear", Linear), bias=add.b, out=add.out)


def _glu(match: Match) -> LaneOp:
    gate, up, act = match.op("gate", Linear), match.op("up", Linear), match.op("act", Act)
    if act.fn not in ("silu", "gelu_tanh"):
        raise TypeError(f"`{act.fn}` is no gate")
    return Glu(gate.x, gate.w, up.w, match.op("mul", Mul).out, act.fn)


def _norm_rope(match: Match) -> LaneOp:
    norm, rope = match.op("norm", Norm), match.op("rope", Rope)
    return NormRope(norm.w, norm.eps, norm.plus_one, replace(rope, x=norm.x))


def _into(match: Match) -> LaneOp:
    """The op that makes the rows, made to write them where the set would."""
    made = next(op for op in match.ops if isinstance(op, Placed))
    into = match.op("set", Set)
    return Into(rename(made, {made.out: into.out}), into.table, into.at)


def _ropes(match: Match) -> LaneOp:
    return Ropes(_table_last(op for op in match.ops if isinstance(op, Side)))


def _linears(match: Match) -> LaneOp:
    return Linears(_table_last(op for op in match.ops if isinstance(op, Part)))


def _table_last(members: Iterable[T]) -> tuple[T, ...]:
    """Those that write table rows after those that write buffers."""
    return tuple(sorted(members, key=lambda op: isinstance(op, Into)))


def _add_norm(match: Match) -> LaneOp:
    add, norm = match.op("add", Add), match.op("norm", Norm)
    return AddNorm(add.a, add.b, add.out, norm.w, norm.out, norm.eps, norm.plus_one)


def _feeds(op: Side, body: Body) -> Hashable:
    """The attention a rotation feeds, itself or through a table, and all its launch must share."""
    made = plain(op)
    if not isinstance(made, Rope | NormRope):
        return None
    attention = _attention(op.out, body)
    if attention is None:
        return None
    rope = turn(op)
    norm = (made.eps, made.plus_one) if isinstance(made, NormRope) else None
    return attention, rope.rope, rope.pos, rope.head_dim, rope.rot, rope.kind, norm


def _attention(name: str, body: Body) -> int | None:
    """The attention that reads a tensor, itself or from the table it is set into."""
    for key in body.readers(name):
        op = body.nodes[key].op
        if isinstance(plain(op), Attention):
            return key
        if isinstance(op, Set) and op.x == name:
            return _attention(op.out, body)
    return None


def _factor(op: Part, _: Body) -> Hashable:
    """The tensor a product reads."""
    made = plain(op)
    return made.x if isinstance(made, Linear) else None


def _set_of(*classes: type) -> Tree:
    return Tree("set", (Set,), {"x": Tree("made", classes)})


_CHAIN = (ONE, ESC, CONVEX, VER)
_MERGE = (CONVEX, VER)

TABLE: tuple[Rule, ...] = (
    Rule(
        "linear_bias",
        Tree(
            "add",
            (Add,),
            {"a": Tree("linear", (Linear,), where=lambda op, _: op.bias is None)},
            where=lambda op, body: op.b in body.facts.graph.consts,
        ),
        _CHAIN,
        _bias,
    ),
    Rule(
        "glu",
        Tree(
            "mul",
            (Mul,),
            {
                "a": Tree(
                    "act",
                    (Act,),
                    {"x": Tree("gate", (Linear,))},
                    where=lambda op, _: op.fn in ("silu", "gelu_tanh"),
                ),
                "b": Tree("up", (Linear,)),
            },
            commutes=True,
        ),
        (*_CHAIN, SAME_X, FMT, NO_BIAS),
        _glu,
    ),
    Rule(
        "qk_norm_rope",
        Tree("rope", (Rope,), {"x": Tree("norm", (Norm,))}),
        (*_CHAIN, WHOLE_HEAD),
        _norm_rope,
    ),
    Rule("rope_set", _set_of(Rope, NormRope), _CHAIN, _into),
    Rule("linear_set", _set_of(Linear), _CHAIN, _into),
    Rule("attention_set", _set_of(Attention), _CHAIN, _into),
    Rule(
        "residual_norm",
        Tree(
            "norm",
            (Norm,),
            {"x": Tree("add", (Add,), where=lambda op, body: op.b not in body.facts.graph.consts)},
        ),
        (CONVEX, VER, WHOLE_ROW),
        _add_norm,
        exports=frozenset({"add"}),
    ),
    Rule(
        "rope_parts",
        Siblings((Rope, NormRope, Into), _feeds),
        _MERGE,
        _ropes,
    ),
    Rule(
        "gemv_parts",
        Siblings((Linear, Into), _factor),
        (*_MERGE, GEMV, SAME_FORM),
        _linears,
    ),
)
