"""What the ops of a mixture of experts compute, in NumPy, row by row."""

import numpy as np
from numpy.typing import NDArray

from bedstone.graph.step import Renorm, Score, TopK
from bedstone.oracle.arithmetic import ACTIVATIONS, Floats, softmax

Ids = NDArray[np.int32]


def score(logits: Floats, op: Score) -> Floats:
    """Scores [rows, experts] of router logits."""
    if op.fn == "sigmoid":
        return ACTIVATIONS["sigmoid"](logits)
    return np.stack([softmax(row) for row in logits])


def topk(scores: Floats, bias: Floats | None, op: TopK) -> Ids:
    """The best experts of each row [rows, k], best first; ties take the lower index."""
    judged = scores if bias is None else scores + bias
    return np.stack([_best(_allowed(row, op), op.k) for row in judged])


def _allowed(row: Floats, op: TopK) -> Floats:
    """The scores of a row, minus infinity outside its best groups."""
    groups = row.reshape(op.groups, -1)
    worth = np.sort(groups, axis=1)[:, -op.group_best :].sum(axis=1)
    allowed = np.full_like(groups, -np.inf)
    kept = _best(worth, op.group_k)
    allowed[kept] = groups[kept]
    return allowed.reshape(-1)


def _best(scores: Floats, k: int) -> Ids:
    return np.argsort(-scores, kind="stable")[:k].astype(np.int32)


def renorm(scores: Floats, ids: Ids, op: Renorm) -> Floats:
    """The weights [rows, k] of the chosen experts."""
    weights: Floats = np.take_along_axis(scores, ids, axis=1)
    if op.normalise:
        weights = weights / weights.sum(axis=1, keepdims=True)
    scaled: Floats = weights * scores.dtype.type(op.factor)
    return scaled


def xlinear(x: Floats, ids: Ids, w: Floats) -> Floats:
    """Each row's units by the matrices of its experts: [rows, K * n]."""
    rows, chosen = ids.shape
    units = x.reshape(rows, -1, w.shape[2])
    spread = np.broadcast_to(units, (rows, chosen, w.shape[2]))
    products = [w[e] @ spread[row, j] for row in range(rows) for j, e in enumerate(ids[row])]
    return np.stack(products).reshape(rows, -1)


def xsum(x: Floats, weights: Floats) -> Floats:
    """The units of each row, weighted, summed from the first to the last: [rows, n]."""
    rows, chosen = weights.shape
    units = x.reshape(rows, chosen, -1)
    total = np.zeros_like(units[:, 0])
    for j in range(chosen):
        total += units[:, j] * weights[:, j : j + 1]
    return total
