"""Ops that carry a state from row to row of one sequence: a convolution's ring, a delta net's.

Each makes two tensors: its result, and the next version of the table it carries, whose sequence
begins with zeros.
"""

from dataclasses import dataclass

from bedstone.graph.tensor import Out, Ref


@dataclass(frozen=True, slots=True)
class Decay:
    """The log of a decay, `-exp(a_log) * softplus(a + dt)`: constants `a_log` and `dt` [heads]."""

    a: Ref
    a_log: Ref
    dt: Ref
    out: Out


@dataclass(frozen=True, slots=True)
class Conv:
    """Causal convolution of each channel of `x` [rows, channels] by its taps `w` [channels, k].

    The last tap meets the row itself, those before it the rows before; before the first row stand
    those of `ring` [k - 1, channels], oldest first. `version` is the ring after this step.
    """

    x: Ref
    w: Ref
    ring: Ref
    out: Out
    version: Out


@dataclass(frozen=True, slots=True)
class Delta:
    """The gated delta rule on a state S [dk, dv] for each of `heads` → [rows, heads * dv].

    `q` and `k` are [rows, key_heads * dk], `v` is [rows, heads * dv], `g` (the log of a decay) and
    `beta` are [rows, heads]; `state` is a table [heads * dk, dv]. Head h reads key head
    h // (heads / key_heads). Row by row: S *= exp(g); S += beta * outer(k, v - S^T k); the result
    is scale * S^T q. `version` is the state after the last row.
    """

    q: Ref
    k: Ref
    v: Ref
    g: Ref
    beta: Ref
    state: Ref
    out: Out
    version: Out
    key_heads: int
    heads: int
    dk: int
    dv: int
    scale: float


RecurrentOp = Decay | Conv | Delta
