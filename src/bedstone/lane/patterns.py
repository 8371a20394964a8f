"""The shapes that the rules of the table look for."""

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
    Part,
    Renorm,
    Rope,
    Scale,
    Score,
    Set,
    Softcap,
    TopK,
    XLinear,
    XSum,
)
from bedstone.lane import siblings
from bedstone.lane.body import Body
from bedstone.lane.classes import (
    AddNorm,
    Attended,
    Convolved,
    ExpertGlu,
    ExpertSum,
    GatedDelta,
    Glu,
    Into,
    IntoEach,
    NormRope,
)
from bedstone.lane.pattern import AttendedRows, Either, RowsSet, Siblings, Tree


def _is_gate(op: Act, _: Body) -> bool:
    return op.fn in ("silu", "gelu_tanh")


def _is_sigmoid(op: Act, _: Body) -> bool:
    return op.fn == "sigmoid"


def _adds_constant(op: Add, body: Body) -> bool:
    return op.b in body.facts.graph.consts


def _adds_tensor(op: Add, body: Body) -> bool:
    return op.b not in body.facts.graph.consts


def _adds_another(op: Add, body: Body) -> bool:
    return op.a != op.b and _adds_tensor(op, body)


def _has_no_gate(op: Attention | Attended, body: Body) -> bool:
    if isinstance(op, Attended):
        return op.gate is None and _attends_table(op.attention, body)
    return _attends_table(op, body)


def _attends_table(op: Attention, body: Body) -> bool:
    return body.facts.cached(op.k)


def _adds_plainly(op: AddNorm, _: Body) -> bool:
    """Two addends, neither of which is normed on the way yet."""
    return op.pre is None and op.a != op.b


def _weighs_rows(op: XSum, body: Body) -> bool:
    return body.facts.width(op.w) == 1


def _gated(product: type) -> Tree:
    """The product of an activation of one product and another product."""
    act = Tree("act", (Act,), {"x": Tree("gate", (product,))}, where=_is_gate)
    return Tree("mul", (Mul,), {"a": act, "b": Tree("up", (product,))}, commutes=True)


def _set_of(*classes: type) -> Tree:
    """What makes the rows that are set."""
    return Tree("set", (Set,), {"x": Tree("made", classes)})


SCALED_EMBED = Tree("scale", (Scale,), {"x": Tree("embed", (Embed,))})
BIASED = Tree(
    "add",
    (Add,),
    {"a": Tree("linear", (Linear,), where=lambda op, _: op.bias is None)},
    where=_adds_constant,
)
ADDED = Tree("add", (Add,), {"b": Tree("linear", (Linear,))}, where=_adds_another, commutes=True)
CAPPED = Tree("softcap", (Softcap,), {"x": Tree("linear", (Linear,))})
GATED = _gated(Linear)
EXPERT_GATED = _gated(XLinear)

_JOINED_QUERIES = Tree("concat", (Concat,), where=lambda op, _: not op.shared)
_TAIL = Tree("tail", (Part,), where=lambda op, body: op.units == 1 and body.facts.cached(op.x))
_JOINED_KEYS = Tree("concat", (Concat,), {"b": _TAIL}, where=lambda op, _: op.shared)
SPLIT_ATTENTION = Either(
    (
        Tree("attention", (Attention,), {"q": _JOINED_QUERIES}, where=_attends_table),
        Tree("attention", (Attention,), {"k": _JOINED_KEYS}),
    )
)

_SIGMOID = Tree("act", (Act,), where=_is_sigmoid)
_ATTENTION = Tree("attention", (Attention, Attended), where=_has_no_gate)
GATED_ATTENTION = Tree(
    "mul", (Mul,), {"a": Either((_ATTENTION, AttendedRows())), "b": _SIGMOID}, commutes=True
)
_SILU = Tree("act", (Act,), where=lambda op, _: op.fn == "silu")
GATED_NORM = Tree("mul", (Mul,), {"a": Tree("norm", (Norm,)), "b": _SILU}, commutes=True)

CONV_ACT = Tree("act", (Act,), {"x": Tree("conv", (Conv,))})
CONV_NORM = Tree("norm", (L2Norm,), {"x": Tree("conv", (Conv, Convolved))})
DELTA_GATES = Tree("delta", (Delta,), {"g": Tree("decay", (Decay,)), "beta": _SIGMOID})

NORMED_TURN = Tree("rope", (Rope,), {"x": Tree("norm", (Norm,))})
ROPE_SET = _set_of(Rope, NormRope)
NORM_SET = _set_of(Norm)
LINEAR_SET = Either((_set_of(Linear), RowsSet()))
ATTENTION_SET = _set_of(Attention, Attended)
DELTA_SET = _set_of(Delta, GatedDelta)

_LOGITS = Tree("linear", (Linear,))
_SCORES = Tree("score", (Score,), {"x": _LOGITS})
ROUTE = Tree("renorm", (Renorm,), {"x": _SCORES, "ids": Tree("topk", (TopK,), {"x": _SCORES})})

EXPERT_SUM = Tree("sum", (XSum,), {"x": Tree("down", (XLinear,))})
_EXPERTS = Tree("sum", (ExpertSum,), {"x": Tree("experts", (ExpertGlu,))})
_SHARED = Tree("down", (Linear,), {"x": Tree("shared", (Glu,))})
_SHARE = Tree("share", (Act,), {"x": Tree("gate", (Linear,))}, where=_is_sigmoid)
_WEIGHED = Tree("weighed", (XSum,), {"x": _SHARED, "w": _SHARE}, where=_weighs_rows)
SHARED_EXPERT = Tree(
    "add", (Add,), {"a": _EXPERTS, "b": Either((_SHARED, _WEIGHED))}, commutes=True
)

NORMED_SUM = Tree("norm", (Norm,), {"x": Tree("add", (Add,), where=_adds_tensor)})
SANDWICH = Tree(
    "add_norm", (AddNorm,), {"b": Tree("norm", (Norm,))}, where=_adds_plainly, commutes=True
)

CONVS = Siblings((Conv, Convolved), siblings.convolved)
TURNS = Siblings((Rope, NormRope, Into), siblings.attended)
PRODUCTS = Siblings((Linear, Into, IntoEach), siblings.factor)
