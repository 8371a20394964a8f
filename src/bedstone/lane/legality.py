"""The conditions a match must meet, each by the name the table uses.

A condition says why a match may not be joined, or nothing. Its `reason` is what a miss records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bedstone.graph.step import Linear, Norm, Rope
from bedstone.lane.classes import plain
from bedstone.lane.pattern import Match
from bedstone.lane.schedule import GEMV_ROWS, Reason


@dataclass(frozen=True, slots=True)
class Condition:
    """One way a match can be illegal."""

    reason: Reason
    refusal: Callable[[Match], str | None]


def _one(match: Match) -> str | None:
    for name in match.elided():
        count = len(match.body.readers(name))
        if count != 1:
            return f"`{name}` has {count} readers"
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


def _products(match: Match) -> list[Linear]:
    return [op for op in map(plain, match.ops) if isinstance(op, Linear)]


def _same_x(match: Match) -> str | None:
    read = sorted({op.x for op in _products(match)})
    return None if len(read) == 1 else f"the products read {' and '.join(f'`{x}`' for x in read)}"


def _fmt(match: Match) -> str | None:
    consts = match.body.facts.graph.consts
    formats = sorted({consts[op.w].format for op in _products(match)})
    return None if len(formats) == 1 else f"the matrices are {' and '.join(formats)}"


def _no_bias(match: Match) -> str | None:
    biases = (op.bias for op in _products(match))
    return next((f"`{bias}` is added to a product" for bias in biases if bias is not None), None)


def _same_form(match: Match) -> str | None:
    facts = match.body.facts
    quant = {facts.reads_quant(facts.matrix(op.w)) for op in _products(match)}
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


def _gemv_rows(match: Match) -> str | None:
    rows = max(match.body.facts.rows(op.x) for op in _products(match))
    return None if rows <= GEMV_ROWS else f"{rows} rows are no GEMV, which takes {GEMV_ROWS}"


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

GEMV = Condition("shape", _gemv_rows)
"""The rows are few enough for a GEMV."""
