"""Ops on whole rows: embedding, norms, products, elementwise functions, and what closes a step."""

from dataclasses import dataclass
from typing import Literal

from bedstone.graph.tensor import Out, Ref

ActFn = Literal["silu", "gelu_tanh", "sigmoid", "softplus"]


@dataclass(frozen=True, slots=True)
class Embed:
    """Rows of `table` [vocab, width] at `ids` [rows] → [rows, width]."""

    ids: Ref
    table: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Norm:
    """Root-mean-square norm of each `unit` values, times `w` (or `1 + w`)."""

    x: Ref
    w: Ref
    out: Out
    eps: float
    unit: int
    plus_one: bool = False


@dataclass(frozen=True, slots=True)
class L2Norm:
    """Each `unit` values over their length: `x / sqrt(sum(x * x) + eps)`."""

    x: Ref
    out: Out
    eps: float
    unit: int


@dataclass(frozen=True, slots=True)
class Linear:
    """`x` [rows, k] by `w` [n, k] transposed, plus `bias` [n] → [rows, n]."""

    x: Ref
    w: Ref
    out: Out
    bias: Ref | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """`a + b`, equal shapes (a constant vector `b` broadcasts over rows)."""

    a: Ref
    b: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Mul:
    """`a * b`, equal shapes."""

    a: Ref
    b: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Act:
    """`fn(x)` elementwise."""

    x: Ref
    out: Out
    fn: ActFn


@dataclass(frozen=True, slots=True)
class Scale:
    """`x * by`."""

    x: Ref
    out: Out
    by: float


@dataclass(frozen=True, slots=True)
class Softcap:
    """`cap * tanh(x / cap)`."""

    x: Ref
    out: Out
    cap: float


@dataclass(frozen=True, slots=True)
class ArgMax:
    """The index of the largest value of each row; ties take the lower index. Closes a step."""

    x: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Sample:
    """A token of each row of logits, drawn as its sequence's settings say; -1 for bad logits.

    What the settings are and mean is for `bedstone.spec.sampling` to say.
    """

    x: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Finish:
    """Drawn tokens [rows, 1] as those of the step, which they close."""

    x: Ref
    out: Out


DenseOp = (
    Embed | Norm | L2Norm | Linear | Add | Mul | Act | Scale | Softcap | ArgMax | Sample | Finish
)
