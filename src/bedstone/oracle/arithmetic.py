"""What each op of a step computes, in NumPy, in the dtype of its inputs.

Written for the reader, row by row and head by head where that is plainer: nothing here is shared
with a kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.graph.step import ActFn, Attention, HLinear, L2Norm, Norm, Rope, RopeTable

Floats = NDArray[Any]


def product(x: Floats, w: Floats) -> Floats:
    """Each row of `x` [rows, k] by `w` [n, k]: a row's bits hang on no other row."""
    return np.stack([w @ row for row in x])


def norm(x: Floats, w: Floats, op: Norm) -> Floats:
    """Each `unit` values of `x` [rows, width] over their root mean square, times the weight."""
    units = x.reshape(x.shape[0], -1, op.unit)
    mean_square = np.mean(units * units, axis=-1, keepdims=True)
    gain = 1 + w if op.plus_one else w
    normed: Floats = units / np.sqrt(mean_square + x.dtype.type(op.eps)) * gain
    return normed.reshape(x.shape)


def l2norm(x: Floats, op: L2Norm) -> Floats:
    """Each `unit` values of `x` [rows, width] over the root of the sum of their squares."""
    units = x.reshape(x.shape[0], -1, op.unit)
    square = np.sum(units * units, axis=-1, keepdims=True)
    normed: Floats = units / np.sqrt(square + x.dtype.type(op.eps))
    return normed.reshape(x.shape)


def softcap(x: Floats, cap: float) -> Floats:
    """`cap * tanh(x / cap)`."""
    limit = x.dtype.type(cap)
    capped: Floats = limit * np.tanh(x / limit)
    return capped


def _sigmoid(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _silu(x: Floats) -> Floats:
    return x * _sigmoid(x)


def _gelu_tanh(x: Floats) -> Floats:
    half, slope = x.dtype.type(0.5), x.dtype.type(np.sqrt(2 / np.pi))
    gate: Floats = half * (1 + np.tanh(slope * (x + x.dtype.type(0.044715) * x**3)))
    return x * gate


def _softplus(x: Floats) -> Floats:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


ACTIVATIONS: dict[ActFn, Callable[[Floats], Floats]] = {
    "silu": _silu,
    "gelu_tanh": _gelu_tanh,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
}


def rope(x: Floats, op: Rope, table: RopeTable, length: int) -> Floats:
    """The heads of `x` turned by their rows' positions; the last row stands at `length - 1`."""
    turned = x.reshape(x.shape[0], op.heads, op.head_dim).copy()
    first, second = _pairs(op)
    start = length - x.shape[0]
    for row in range(x.shape[0]):
        angle = (start + row) * np.array(table.inv_freq, np.float64)
        cos = (np.cos(angle) * table.attention_factor).astype(x.dtype)
        sin = (np.sin(angle) * table.attention_factor).astype(x.dtype)
        a, b = turned[row][:, first], turned[row][:, second]
        turned[row][:, first] = a * cos - b * sin
        turned[row][:, second] = b * cos + a * sin
    return turned.reshape(x.shape)


def _pairs(op: Rope) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indices within a head of the two values of each pair."""
    pairs, half = np.arange(op.rot // 2), op.rot // 2
    first, second = (pairs, pairs + half) if op.kind == "neox" else (2 * pairs, 2 * pairs + 1)
    return first + op.offset, second + op.offset


@dataclass(frozen=True, slots=True)
class Cache:
    """A sequence's cached keys and values, [capacity, groups * dk] and [capacity, groups * dv].

    Values may be as wide as keys: then the first dv of each group count. `length` rows are in use.
    """

    keys: Floats
    values: Floats
    length: int


def attention(q: Floats, cache: Cache, op: Attention) -> Floats:
    """Each row's heads over the cached rows it sees; head h reads group h // (heads / groups)."""
    rows, share = q.shape[0], op.heads // op.groups
    out = np.empty((rows, op.heads, op.dv), q.dtype)
    for row in range(rows):
        end = cache.length - rows + row + 1
        seen = slice(0 if op.window is None else max(0, end - op.window), end)
        keys = cache.keys[seen].reshape(-1, op.groups, op.dk)
        values = cache.values[seen].reshape(len(keys), op.groups, -1)[:, :, : op.dv]
        for head in range(op.heads):
            group = head // share
            query = q[row, head * op.dk : (head + 1) * op.dk]
            weights = softmax(_scores(query, keys[:, group], op))
            out[row, head] = weights @ values[:, group]
    return out.reshape(rows, op.heads * op.dv)


def _scores(query: Floats, keys: Floats, op: Attention) -> Floats:
    scores: Floats = (keys @ query) * query.dtype.type(op.scale)
    return scores if op.softcap is None else softcap(scores, op.softcap)


def softmax(scores: Floats) -> Floats:
    """Scores as shares of one."""
    weights: Floats = np.exp(scores - scores.max())
    total: Floats = weights.sum(keepdims=True)
    return weights / total


def hlinear(x: Floats, w: Floats, op: HLinear) -> Floats:
    """Each head of `x` [rows, heads * k] by its own matrix of `w` [heads, n, k]."""
    heads = x.reshape(len(x), op.heads, -1)
    products = [product(heads[:, h], m.T if op.transposed else m) for h, m in enumerate(w)]
    return np.concatenate(products, axis=1)
