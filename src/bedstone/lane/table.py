"""The shared fusion table: one row a rule, tried in this order.

A rule joins the ops its pattern finds into a class when every condition it names holds and the
lane has a launch for that class. Nothing outside this table decides a fusion.

Order matters: what a row forms a later row may take in. `rope_set` comes before `rope_parts` so
that a side already knows its cache rows, and `linear_set` before `gemv_parts` for the same reason.
A row names the conditions that can fail for its pattern: in a chain whose inner results have one
reader each, no member can hang on another through a stranger, so only merges ask for CONVEX.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bedstone.graph.step import Act, Add, Attention, Linear, Mul, Norm, Rope, Set
from bedstone.lane import join
from bedstone.lane.classes import Into, LaneOp, NormRope
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


def _set_of(*classes: type) -> Tree:
    """What makes the rows that are set."""
    return Tree("set", (Set,), {"x": Tree("made", classes)})


_BIASED = Tree(
    "add",
    (Add,),
    {"a": Tree("linear", (Linear,), where=lambda op, _: op.bias is None)},
    where=lambda op, body: op.b in body.facts.graph.consts,
)
_ACT = Tree(
    "act",
    (Act,),
    {"x": Tree("gate", (Linear,))},
    where=lambda op, _: op.fn in ("silu", "gelu_tanh"),
)
_GATED = Tree("mul", (Mul,), {"a": _ACT, "b": Tree("up", (Linear,))}, commutes=True)
_NORMED_TURN = Tree("rope", (Rope,), {"x": Tree("norm", (Norm,))})
_SUM = Tree("add", (Add,), where=lambda op, body: op.b not in body.facts.graph.consts)
_NORMED_SUM = Tree("norm", (Norm,), {"x": _SUM})
_TURNS = Siblings((Rope, NormRope, Into), join.attended)
_PRODUCTS = Siblings((Linear, Into), join.factor)

_GATE = (ONE, ESC, VER, SAME_X, FMT, NO_BIAS)
_SET = (ONE, ESC, VER)
_SUM_KEPT = frozenset({"add"})

TABLE: tuple[Rule, ...] = (
    Rule("linear_bias", _BIASED, (ONE, ESC), join.biased),
    Rule("glu", _GATED, _GATE, join.gated),
    Rule("qk_norm_rope", _NORMED_TURN, (ONE, ESC, WHOLE_HEAD), join.normed_turn),
    Rule("rope_set", _set_of(Rope, NormRope), _SET, join.placed),
    Rule("linear_set", _set_of(Linear), _SET, join.placed),
    Rule("attention_set", _set_of(Attention), _SET, join.placed),
    Rule("residual_norm", _NORMED_SUM, (WHOLE_ROW,), join.normed_sum, exports=_SUM_KEPT),
    Rule("rope_parts", _TURNS, (CONVEX, VER), join.turns),
    Rule("gemv_parts", _PRODUCTS, (CONVEX, VER, GEMV, SAME_FORM), join.products),
)
