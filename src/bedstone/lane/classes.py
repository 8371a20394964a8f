"""The fused classes: what the ops of a step become where a rule of the table fires.

A fused class holds the ops it joins, or their operands, so it says what it computes; the one IR of
the lane is the step's ops and these. `bedstone.graph.refs` derives what a class reads and makes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeGuard

from bedstone.graph.refs import reads, writes
from bedstone.graph.step import (
    ActFn,
    Attention,
    Conv,
    Delta,
    Embed,
    Linear,
    Norm,
    Op,
    Out,
    Ref,
    Rope,
    RowSel,
    Set,
)

GateFn = Literal["silu", "gelu_tanh"]


@dataclass(frozen=True, slots=True)
class ScaledEmbed:
    """Embedded rows times a factor."""

    embed: Embed
    by: float

    @property
    def out(self) -> Out:
        """The scaled rows."""
        return self.embed.out


@dataclass(frozen=True, slots=True)
class AddedLinear:
    """A product, and `add` added to it."""

    linear: Linear
    add: Ref

    @property
    def out(self) -> Out:
        """The sum."""
        return self.linear.out


@dataclass(frozen=True, slots=True)
class CappedLinear:
    """A product, each value of it bent to stay within a cap."""

    linear: Linear
    cap: float

    @property
    def out(self) -> Out:
        """The bent values."""
        return self.linear.out


@dataclass(frozen=True, slots=True)
class PreNormed:
    """How an addend is normed before it is added."""

    w: Ref
    eps: float
    plus_one: bool


@dataclass(frozen=True, slots=True)
class AddNorm:
    """`sum = a + b` and the norm of each row of it, both results; `b` may be normed first."""

    a: Ref
    b: Ref
    sum: Out
    w: Ref
    out: Out
    eps: float
    plus_one: bool
    pre: PreNormed | None = None


@dataclass(frozen=True, slots=True)
class GatedNorm:
    """The norm of each unit, times `silu(gate)`."""

    norm: Norm
    gate: Ref

    @property
    def out(self) -> Out:
        """The gated units."""
        return self.norm.out


@dataclass(frozen=True, slots=True)
class Glu:
    """`fn(x gate) * (x up)`."""

    x: Ref
    gate: Ref
    up: Ref
    out: Out
    fn: GateFn


@dataclass(frozen=True, slots=True)
class NormRope:
    """The norm of each head by `w`, then the rotation: `rope.x` is what the norm reads."""

    w: Ref
    eps: float
    plus_one: bool
    rope: Rope

    @property
    def out(self) -> Out:
        """The rotated heads."""
        return self.rope.out


@dataclass(frozen=True, slots=True)
class QuerySplit:
    """The first `own` values of a head's query as the attention's `q` says, the rest in `tail`."""

    own: int
    tail: Ref


@dataclass(frozen=True, slots=True)
class KeySplit:
    """The first `own` values of a key where the attention's `k` says, the rest in a cached row.

    They are the columns from `first` on of the row of `table`, the same for every group.
    """

    own: int
    table: Ref
    first: int


@dataclass(frozen=True, slots=True)
class Attended:
    """An attention whose result may be gated, or whose queries or keys lie in two places."""

    attention: Attention
    gate: Ref | None = None
    split: QuerySplit | KeySplit | None = None

    @property
    def out(self) -> Out:
        """The heads' results."""
        return self.attention.out


@dataclass(frozen=True, slots=True)
class GatedRows:
    """A batch's gated attentions: each makes its row of one tensor, gated by that row of `gate`.

    `sources` are the graph ops of each.
    """

    attentions: tuple[Attended, ...]
    gate: Ref
    sources: tuple[tuple[int, ...], ...]

    @property
    def out(self) -> Out:
        """The gated rows."""
        return self.attentions[0].out


@dataclass(frozen=True, slots=True)
class Convolved:
    """A convolution, its activation, and each `unit` of the result brought to unit length."""

    conv: Conv
    act: ActFn | None
    unit: int | None = None
    eps: float = 0.0

    @property
    def out(self) -> Out:
        """What the convolution ends in."""
        return self.conv.out


@dataclass(frozen=True, slots=True)
class Convs:
    """Convolutions of one sequence, side by side."""

    parts: tuple[Conv | Convolved, ...]


@dataclass(frozen=True, slots=True)
class GatedDelta:
    """The delta rule with the decay made of `a` and the share of `b`.

    `delta.g` and `delta.beta` name what they are made of.
    """

    delta: Delta
    a_log: Ref
    dt: Ref

    @property
    def out(self) -> Out:
        """The heads' results."""
        return self.delta.out


@dataclass(frozen=True, slots=True)
class Routed:
    """A router: its product, scores, choice and weights. The ids and the weights are results."""

    x: Ref
    w: Ref
    fn: Literal["softmax", "sigmoid"]
    bias: Ref | None
    ids: Out
    out: Out
    k: int
    groups: int
    group_k: int
    group_best: int
    normalise: bool
    factor: float


@dataclass(frozen=True, slots=True)
class ExpertGlu:
    """`fn(x gate) * (x up)` by the matrices of the chosen experts."""

    x: Ref
    ids: Ref
    gate: Ref
    up: Ref
    out: Out
    fn: GateFn


@dataclass(frozen=True, slots=True)
class ExpertSum:
    """The products of each unit by its expert's matrix, weighted and summed."""

    x: Ref
    ids: Ref
    w: Ref
    weights: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class ShareGate:
    """How much of a shared network is taken: the sigmoid of its input by one row."""

    w: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Mixture:
    """Experts and the network every row takes: in by `glu` and `shared`, out by `w` and `down`.

    What is made inward is a result too, for the launch that goes outward reads it; `inward` are
    the graph ops of the first half.
    """

    glu: ExpertGlu
    shared: Glu
    gate: ShareGate | None
    w: Ref
    weights: Ref
    down: Ref
    out: Out
    inward: tuple[int, ...]


Placed = Linear | Norm | Rope | NormRope | Attention | Attended | Delta | GatedDelta
"""An op whose result can go to rows of a table in place."""


@dataclass(frozen=True, slots=True)
class Into:
    """An op whose result goes straight to rows of `table`: `op.out` is the table's next version."""

    op: Placed
    table: Ref
    at: RowSel
    column: int | None = None

    @property
    def out(self) -> Out:
        """The table's next version."""
        return self.op.out


@dataclass(frozen=True, slots=True)
class IntoEach:
    """A batch's product whose row r goes straight to rows of the table of sequence r.

    `op.out` is the next version of the first table, `others` those of the others.
    """

    op: Linear
    others: tuple[Out, ...]
    tables: tuple[Ref, ...]
    ats: tuple[RowSel, ...]

    @property
    def out(self) -> Out:
        """The first table's next version."""
        return self.op.out


Side = Rope | NormRope | Into
"""A rotation, wherever it goes."""

Part = Linear | Into | IntoEach
"""A product, wherever it goes."""


@dataclass(frozen=True, slots=True)
class Ropes:
    """Rotations at the same positions by the same table, side by side."""

    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class Linears:
    """Products of one `x`, side by side."""

    parts: tuple[Part, ...]


Merged = Ropes | Linears | Convs
"""Ops side by side: each has results of its own."""

Single = (
    Op
    | ScaledEmbed
    | AddedLinear
    | CappedLinear
    | AddNorm
    | GatedNorm
    | Glu
    | NormRope
    | Attended
    | GatedRows
    | Convolved
    | GatedDelta
    | Routed
    | ExpertGlu
    | ExpertSum
    | Mixture
    | Into
    | IntoEach
)
"""An op with one result that it is for."""

LaneOp = Single | Merged


def plain(op: LaneOp) -> LaneOp:
    """The op itself, wherever its result goes."""
    return op.op if isinstance(op, Into | IntoEach) else op


def product(op: Part) -> Linear:
    """The product that a part is."""
    made = plain(op)
    if not isinstance(made, Linear):
        raise TypeError(f"a {type(made).__name__} is no product")
    return made


def turn(op: Side) -> Rope:
    """The rotation that a side is, its norm aside."""
    made = plain(op)
    if isinstance(made, NormRope):
        return made.rope
    if not isinstance(made, Rope):
        raise TypeError(f"a {type(made).__name__} is no rotation")
    return made


def attention_of(op: LaneOp) -> Attention | None:
    """The attention that an op is, its gate and its place aside."""
    made = plain(op)
    if isinstance(made, Attended):
        return made.attention
    return made if isinstance(made, Attention) else None


def gates_batch_rows(op: LaneOp) -> TypeGuard[GatedRows]:
    """Whether an op is a batch's gated attentions, run as each sequence's with its row set."""
    return isinstance(op, GatedRows)


def taken(op: LaneOp) -> tuple[Ref, ...]:
    """The tensors an op reads that it does not make itself."""
    made = set[str](writes(op))
    return tuple(name for name in reads(op) if name not in made)


def overwritten(op: LaneOp) -> tuple[Ref, ...]:
    """The table versions `op` writes over: reading one of them later is illegal."""
    if isinstance(op, Ropes):
        return _all_overwritten(op.sides)
    if isinstance(op, Linears | Convs):
        return _all_overwritten(op.parts)
    return _one_overwritten(op)


def _all_overwritten(members: Iterable[LaneOp]) -> tuple[Ref, ...]:
    return tuple(name for member in members for name in overwritten(member))


def _one_overwritten(op: Single) -> tuple[Ref, ...]:
    match op:
        case Set(table=table):
            found: tuple[Ref, ...] = (table,)
        case Into(table=table):
            found = (table, *overwritten(op.op))
        case IntoEach(tables=tables):
            found = tables
        case Conv(ring=state) | Delta(state=state):
            found = (state,)
        case Convolved(conv=one) | GatedDelta(delta=one):
            found = overwritten(one)
        case _:
            found = ()
    return found
