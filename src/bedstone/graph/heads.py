"""Ops that know positions or heads: rotation, attention, products of each head's own matrix."""

from dataclasses import dataclass
from typing import Literal

from bedstone.graph.tensor import Out, Ref

RopeKind = Literal["neox", "pair"]


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotate the `rot` values at `offset` of each head by the row's position.

    `neox` pairs value i of them with i + rot/2, `pair` pairs 2i with 2i + 1. Row r of R stands at
    position `value - R + r` of the param `pos`.
    """

    x: Ref
    out: Out
    rope: str
    pos: str
    heads: int
    head_dim: int
    rot: int
    kind: RopeKind
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Attention:
    """Causal attention of `q` [rows, heads * dk] over cached `k` [len, groups * dk] and `v`.

    Row r of R sees cache rows up to `value - R + r` of the param `pos`; with a `window` w only the
    last w of them. Scores are `scale * q.k`, capped to `softcap` where given, before the softmax.

    Where `v` is the same version as `k`, a value is the first dv of its group's key. Keys and
    values may also be products, windows or joins of all rows of a table.
    """

    q: Ref
    k: Ref
    v: Ref
    out: Out
    pos: str
    heads: int
    groups: int
    dk: int
    dv: int
    scale: float
    window: int | None = None
    softcap: float | None = None


@dataclass(frozen=True, slots=True)
class HLinear:
    """Each head of `x` [rows, heads * k] by its own matrix → [rows, heads * n].

    `w` holds them as [heads, n, k], or as [heads, k, n] where `transposed`.
    """

    x: Ref
    w: Ref
    out: Out
    heads: int
    transposed: bool = False


HeadOp = Rope | Attention | HLinear
