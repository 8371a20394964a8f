"""Ops of a mixture of experts: scores, the choice and its weights, and the experts' products.

With K experts chosen for each row, what they make lies side by side in the row: K units.
"""

from dataclasses import dataclass
from typing import Literal

from bedstone.graph.tensor import Out, Ref

ScoreFn = Literal["softmax", "sigmoid"]


@dataclass(frozen=True, slots=True)
class Score:
    """Router logits [rows, experts] as scores, over all experts."""

    x: Ref
    out: Out
    fn: ScoreFn


@dataclass(frozen=True, slots=True)
class TopK:
    """The `k` experts of each row with the best scores, best first → ids [rows, k].

    `bias` [experts] is added for the choice alone. With `groups`, only experts of the `group_k`
    best groups are chosen; a group is as good as the sum of its `group_best` best experts. Ties
    take the lower index.
    """

    x: Ref
    out: Out
    k: int
    bias: Ref | None = None
    groups: int = 1
    group_k: int = 1
    group_best: int = 1


@dataclass(frozen=True, slots=True)
class Renorm:
    """The scores of the chosen `ids` [rows, k], without any bias, as weights [rows, k].

    Over their sum where `normalise`, then times `factor`.
    """

    x: Ref
    ids: Ref
    out: Out
    normalise: bool
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class XLinear:
    """`x` by the chosen matrices of `w` [experts, n, k] → [rows, K * n].

    Unit j of a row is the product with expert `ids[row, j]`. `x` is [rows, k], read by each of
    them, or [rows, K * k], a unit for each.
    """

    x: Ref
    ids: Ref
    w: Ref
    out: Out
    experts: int


@dataclass(frozen=True, slots=True)
class XSum:
    """The K units of each row of `x` [rows, K * n], weighted by `w` [rows, K], summed in order."""

    x: Ref
    w: Ref
    out: Out


MixtureOp = Score | TopK | Renorm | XLinear | XSum
