"""Launches that know positions or heads."""

from dataclasses import dataclass

from bedstone.graph.step import RopeKind
from bedstone.lane.operand import Dst, Read, Stack, Version


@dataclass(frozen=True, slots=True)
class HeadNorm:
    """A norm of each head before it is rotated."""

    w: str
    eps: float
    plus_one: bool


@dataclass(frozen=True, slots=True)
class RopeSide:
    """One rotation of a launch: `heads` a row of `x`; a side that writes table rows comes last."""

    x: Read
    heads: int
    dst: Dst
    norm: HeadNorm | None = None


@dataclass(frozen=True, slots=True)
class Rope:
    """One rotation, or several at the same positions by the same table.

    Row r of R stands at position `value - R + r` of the param `pos`. The `rot` values at `offset`
    of each head turn, the others are copied.
    """

    sides: tuple[RopeSide, ...]
    table: str
    pos: str
    rows: int
    head_dim: int
    rot: int
    kind: RopeKind
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Split:
    """Queries in two tensors: the first `own` values of a head in one, the rest in `tail`."""

    own: int
    tail: Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Attending:
    """Causal attention of `q` over keys and values, a position a row.

    `span` is the most rows one query attends, `splits` how many pieces that span is cut into; with
    `share_rows` a row read once serves several queries. Where it is `rounded` what is multiplied
    may be rounded to bfloat16.
    """

    q: Read
    k: Version | Read
    v: Version | Read | None
    pos: str
    rows: int
    heads: int
    groups: int
    dk: int
    dv: int
    scale: float
    window: int | None
    softcap: float | None
    span: int
    splits: int
    share_rows: bool
    dst: Dst
    rounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Attending):
    """Attention over the cached rows of `k` and `v`.

    Without `v` a value is the first dv of its group's key. With a `gate` the result is multiplied
    by its sigmoid.
    """

    k: Version
    v: Version | None
    gate: Read | None = None
    split: Split | None = None


@dataclass(frozen=True, slots=True)
class KeyTail:
    """The values of a key after its first `own`: columns of a cached row, shared by all groups."""

    own: int
    table: Version
    first: int
    pitch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatAttention(Attending):
    """Attention over keys and values that are computed of every cached row."""

    k: Read
    v: Read
    tail: KeyTail | None = None


@dataclass(frozen=True, slots=True)
class HeadProduct:
    """Each head of `x` [rows, heads * k] by its own matrix.

    A `transposed` one is held as [k, n], so `m.n` and `m.k` are its rows and their width.
    """

    x: Read
    m: Stack
    rows: int
    transposed: bool
    dst: Dst
