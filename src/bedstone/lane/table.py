"""The shared fusion table: one row a rule, tried in this order.

A rule joins the ops its pattern finds into a class when every condition it names holds and the
lane has a launch for that class. Nothing outside this table decides a fusion.

Order matters: what a row forms a later row may take in. `rope_set` comes before `rope_parts` so
that a side already knows its cache rows, and `linear_set` before `gemv_parts` for the same reason;
`linear_add` comes after the rows that want a sum, and takes what they leave.
A row names the conditions that can fail for its pattern: in a chain whose inner results have one
reader each, no member can hang on another through a stranger, so only merges ask for CONVEX; a
chain that reads nothing on the way cannot cross a write, so it does not ask for VER.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bedstone.lane import join, join_mixture, patterns
from bedstone.lane.classes import LaneOp
from bedstone.lane.legality import (
    CONVEX,
    ESC,
    FMT,
    IN_ORDER,
    NO_BIAS,
    ONE,
    SAME_FORM,
    SAME_X,
    SHARED_FMT,
    SHARED_X,
    SPLIT,
    VER,
    WHOLE_HEAD,
    WHOLE_ROW,
    Condition,
)
from bedstone.lane.pattern import Match, Pattern, Siblings

Numeric = Literal["exact", "order"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    `numeric` says what joining does to the bits: `exact` nothing, `order` sums in another order. No
    rule rounds where the step does not.
    """

    name: str
    pattern: Pattern | Siblings
    legal: tuple[Condition, ...]
    form: Callable[[Match], LaneOp]
    numeric: Numeric = "exact"


_CHAIN = (ONE, ESC)
_JOIN = (ONE, ESC, VER)
_GATE = (*_JOIN, SAME_X, FMT)
_MERGE = (CONVEX, VER)

TABLE: tuple[Rule, ...] = (
    Rule("embed_scale", patterns.SCALED_EMBED, _CHAIN, join.scaled_embed),
    Rule("linear_bias", patterns.BIASED, _CHAIN, join.biased),
    Rule("glu", patterns.GATED, (*_GATE, NO_BIAS), join.gated),
    Rule("expert_glu", patterns.EXPERT_GATED, _GATE, join_mixture.expert_gated),
    Rule("split_attention", patterns.SPLIT_ATTENTION, (*_JOIN, SPLIT), join.split_attention),
    Rule("attn_output_gate", patterns.GATED_ATTENTION, _JOIN, join.gated_attention),
    Rule("gated_norm", patterns.GATED_NORM, _JOIN, join.gated_norm),
    Rule("conv_act", patterns.CONV_ACT, _CHAIN, join.activated),
    Rule("conv_norm", patterns.CONV_NORM, _CHAIN, join.unit_length),
    Rule("delta_gates", patterns.DELTA_GATES, _JOIN, join.gated_delta),
    Rule("qk_norm_rope", patterns.NORMED_TURN, (*_CHAIN, WHOLE_HEAD), join.normed_turn),
    Rule("rope_set", patterns.ROPE_SET, _JOIN, join.placed),
    Rule("norm_set", patterns.NORM_SET, _JOIN, join.placed),
    Rule("linear_set", patterns.LINEAR_SET, (*_JOIN, IN_ORDER), join.placed_rows),
    Rule("attention_set", patterns.ATTENTION_SET, _JOIN, join.placed),
    Rule("delta_set", patterns.DELTA_SET, _JOIN, join.placed),
    Rule("route", patterns.ROUTE, (*_CHAIN, NO_BIAS), join_mixture.routed),
    Rule("expert_sum", patterns.EXPERT_SUM, _JOIN, join_mixture.expert_sum),
    Rule(
        "shared_expert",
        patterns.SHARED_EXPERT,
        (*_JOIN, SHARED_X, SHARED_FMT, NO_BIAS),
        join_mixture.mixture,
    ),
    Rule("residual_norm", patterns.NORMED_SUM, (WHOLE_ROW,), join.normed_sum),
    Rule("sandwich_norm", patterns.SANDWICH, (*_JOIN, WHOLE_ROW), join.sandwiched),
    Rule("logit_cap", patterns.CAPPED, (*_CHAIN, NO_BIAS), join.capped),
    Rule("linear_add", patterns.ADDED, _JOIN, join.added),
    Rule("conv_parts", patterns.CONVS, _MERGE, join.convolutions),
    Rule("rope_parts", patterns.TURNS, _MERGE, join.turns),
    Rule("gemv_parts", patterns.PRODUCTS, (*_MERGE, SAME_FORM), join.products),
)
