"""What the ops that carry a state compute, in NumPy, row by row.

Each updates the table it is given in place.
"""

from dataclasses import dataclass

import numpy as np

from bedstone.graph.step import Delta
from bedstone.oracle.arithmetic import ACTIVATIONS, Floats


def decay(a: Floats, a_log: Floats, dt: Floats) -> Floats:
    """The log of a decay [rows, heads]."""
    rate: Floats = -np.exp(a_log)
    return rate * ACTIVATIONS["softplus"](a + dt)


def conv(x: Floats, w: Floats, ring: Floats) -> Floats:
    """Each channel of `x` [rows, channels] and of the ring before it, by its taps [channels, k]."""
    taps = w.shape[1]
    rows = np.concatenate([ring, x])
    out = np.stack([(rows[r : r + taps] * w.T).sum(axis=0) for r in range(len(x))])
    ring[:] = rows[len(x) :]
    return out


@dataclass(frozen=True, slots=True)
class Gates:
    """The log of each head's decay, and how much of each row it takes in: [rows, heads]."""

    g: Floats
    beta: Floats


def delta(qkv: tuple[Floats, Floats, Floats], gates: Gates, state: Floats, op: Delta) -> Floats:
    """The gated delta rule over the rows of one sequence."""
    rows, share = len(qkv[2]), op.heads // op.key_heads
    q, k = (x.reshape(rows, op.key_heads, op.dk) for x in qkv[:2])
    v = qkv[2].reshape(rows, op.heads, op.dv)
    memory = state.reshape(op.heads, op.dk, op.dv)
    out = np.empty_like(v)
    for row in range(rows):
        for head in range(op.heads):
            key, s = k[row, head // share], memory[head]
            s *= np.exp(gates.g[row, head])
            s += gates.beta[row, head] * np.outer(key, v[row, head] - key @ s)
            out[row, head] = (q[row, head // share] @ s) * s.dtype.type(op.scale)
    return out.reshape(rows, op.heads * op.dv)
