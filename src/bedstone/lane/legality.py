"""The conditions a match must meet, each by the name the table uses.

A condition says why a match may not be joined, or nothing. Its `reason` is what a miss records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bedstone.graph.step import (
    AtParam,
    Attention,
    Concat,
    Linear,
    Norm,
    Ref,
    Rope,
    Set,
    XLinear,
)
from bedstone.lane.classes import ExpertGlu, ExpertSum, Glu, plain
from bedstone.lane.pattern import Match
from bedstone.lane.schedule import Reason
from bedstone.spec.dtype import FORMATS


@dataclass(frozen=True, slots=True)
class Condition:
    """One way a match can be illegal."""

    reason: Reason
    refusal: Callable[[Match], str | None]


def _one(match: Match) -> str | None:
    for name in match.elided():
        readers = match.body.readers(name)
        if not match.members.issuperset(readers):
            return f"`{name}` has {len(readers)} readers"
    return None


def _esc(match: Match) -> str | None:
    outputs = match.body.facts.graph.outputs
    return next((f"`{name}` is an output" for name in match.elided() if name in outputs), None)


def _convex(match: Match) -> str | None:
    path = match.body.between(match.members, _leaving(match, versions=False), versions=False)
    return "a member hangs on another through an op that is no member" if path else None


def _ver(match: Match) -> str | None:
    path = match.body.between(match.members, _leaving(match, versions=True), versions=True)
    return "a table a member reads is written over between the members" if path else None


def _leaving(match: Match, *, versions: bool) -> Iterator[int]:
    """The nodes that follow a member by an edge that the join does not dissolve."""
    for member in match.members:
        for later in match.body.after(member, versions=versions):
            if later not in match.members or not match.tree:
                yield later


def _linears(match: Match) -> list[Linear]:
    return [op for op in map(plain, match.ops) if isinstance(op, Linear)]


def _same_x(match: Match) -> str | None:
    products = [op for op in map(plain, match.ops) if isinstance(op, Linear | XLinear)]
    read = {op.x for op in products}
    chosen = {op.ids for op in products if isinstance(op, XLinear)}
    return _differ(read) or _differ(chosen)


def _differ(read: set[Ref]) -> str | None:
    names = " and ".join(f"`{name}`" for name in sorted(read))
    return f"the products read {names}" if len(read) > 1 else None


def _fmt(match: Match) -> str | None:
    products = [op for op in map(plain, match.ops) if isinstance(op, Linear | XLinear)]
    return _formats_differ(match, *(op.w for op in products))


def _formats_differ(match: Match, *weights: Ref) -> str | None:
    consts = match.body.facts.graph.consts
    formats = sorted({consts[w].format for w in weights})
    return f"the matrices are {' and '.join(formats)}" if len(formats) > 1 else None


def _shared_x(match: Match) -> str | None:
    read = {match.op("experts", ExpertGlu).x, match.op("shared", Glu).x}
    gate = {match.op("gate", Linear).x} if "gate" in match.roles else set[Ref]()
    return _differ(read | gate)


def _shared_fmt(match: Match) -> str | None:
    experts, shared = match.op("experts", ExpertGlu), match.op("shared", Glu)
    inward = _formats_differ(match, experts.gate, shared.gate)
    outward = _formats_differ(match, match.op("sum", ExpertSum).w, match.op("down", Linear).w)
    return inward or outward or _quantized_gate(match)


def _quantized_gate(match: Match) -> str | None:
    if "gate" not in match.roles:
        return None
    held = match.body.facts.graph.consts[match.op("gate", Linear).w].format
    return f"the shared network's gate is {held}" if FORMATS[held].quantized else None


def _split(match: Match) -> str | None:
    concat, attention = match.op("concat", Concat), match.op("attention", Attention)
    units = attention.groups if "tail" in match.roles else attention.heads
    return None if concat.units == units else f"{concat.units} units are joined, not {units} heads"


def _in_order(match: Match) -> str | None:
    """Rows set into tables of their own: row i must be sequence i's."""
    facts = match.body.facts
    for role, key in match.roles.items():
        row, op = role.removeprefix("set."), match.body.nodes[key].op
        if row != role and isinstance(op, Set):
            own = facts.storage[op.table].endswith(f".{row}")
            if not own or op.at != AtParam(facts.position(int(row))):
                return f"row {row} is not set at the place of sequence {row}"
    return None


def _no_bias(match: Match) -> str | None:
    biases = (op.bias for op in _linears(match))
    return next((f"`{bias}` is added to a product" for bias in biases if bias is not None), None)


def _same_form(match: Match) -> str | None:
    facts = match.body.facts
    quant = {facts.reads_quant(facts.matrix(op.w), op.x) for op in _linears(match)}
    return None if len(quant) == 1 else "some matrices take quantized rows, others do not"


def _whole_row(match: Match) -> str | None:
    norm = match.op("norm", Norm)
    width = match.body.facts.width(norm.x)
    return None if norm.unit == width else f"the norm takes {norm.unit} of a row's {width} values"


def _whole_head(match: Match) -> str | None:
    norm, rope = match.op("norm", Norm), match.op("rope", Rope)
    if norm.unit == rope.head_dim:
        return None
    return f"the norm takes {norm.unit} values, a head has {rope.head_dim}"


ONE = Condition("reader", _one)
"""An elided tensor has exactly one reader, a member."""

ESC = Condition("escape", _esc)
"""An elided tensor is no output of the graph."""

CONVEX = Condition("convex", _convex)
"""No member hangs on another except by the edges the join dissolves."""

VER = Condition("version", _ver)
"""No table a member reads is written over before the place of the joined op."""

SAME_X = Condition("same_x", _same_x)
"""The products read one tensor, and the same view of it."""

SHARED_X = Condition("same_x", _shared_x)
"""The experts, the network all rows take and its gate read one tensor."""

SHARED_FMT = Condition("format", _shared_fmt)
"""The experts' matrices and that network's are of one format each way; its gate is dense."""

IN_ORDER = Condition("shape", _in_order)
"""Where rows are set into tables of their own, row i goes to sequence i's."""

SPLIT = Condition("shape", _split)
"""What is joined are the heads, or the groups, of the attention."""

FMT = Condition("format", _fmt)
"""The products' matrices are of one format."""

SAME_FORM = Condition("format", _same_form)
"""The products read one form of their input."""

NO_BIAS = Condition("shape", _no_bias)
"""The products have no bias."""

WHOLE_ROW = Condition("shape", _whole_row)
"""The norm is of whole rows."""

WHOLE_HEAD = Condition("shape", _whole_head)
"""The norm is of the heads that are rotated."""
