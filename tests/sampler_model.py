"""How a token is drawn, in NumPy and float64, written apart from the kernels and from PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Wish:
    """What a row asks of a sampler; `edits` are (token, scale, add), `allowed` None all tokens."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    edits: Sequence[tuple[int, float, float]] = ()
    allowed: Sequence[int] | None = None
    report: int = -1


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Philox 4x32-10."""
    c, (low, high) = list(counter), key
    for _ in range(10):
        even, odd = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [odd >> 32 ^ c[1] ^ low, odd & 0xFFFFFFFF, even >> 32 ^ c[3] ^ high, even & 0xFFFFFFFF]
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return c


def uniform(seed: int, position: int) -> float:
    """The number in [0, 1) of a seed and a position."""
    seed %= 2**64
    words = philox([position, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])
    return (words[1] << 32 | words[0]) / 2**64


def scores(logits: NDArray[np.float32], wish: Wish) -> Array:
    """The logits as edited, -inf where left out."""
    made = logits.astype(np.float64)
    for token, scale, add in wish.edits:
        if 0 <= token < len(made):
            made[token] = made[token] / scale if made[token] > 0 else made[token] * scale
            made[token] += add
    if wish.allowed is not None:
        left = np.full(len(made), -np.inf)
        at = list(wish.allowed)
        left[at] = made[at]
        made = left
    return made


def shares(logits: NDArray[np.float32], wish: Wish) -> Array:
    """The probability that each token is drawn with, by a full sort."""
    made = scores(logits, wish)
    if np.isneginf(made).all():
        made = logits.astype(np.float64)
        return (np.arange(len(made)) == made.argmax()).astype(float)
    if not wish.temperature > 0:
        return (np.arange(len(made)) == made.argmax()).astype(float)
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.exp((made - made.max()) / wish.temperature)
    p = np.where(np.isneginf(made), 0, p)
    order = np.lexsort((np.arange(len(made)), -made))
    kept = np.zeros(len(made), bool)
    kept[order[: wish.top_k if wish.top_k > 0 else None]] = True
    p = np.where(kept, p, 0) / p[kept].sum()
    if wish.top_p < 1:
        reached = np.cumsum(p[order])
        count = int(np.searchsorted(reached, wish.top_p * (1 - 1e-9))) + 1
        p[order[count:]] = 0
    if wish.min_p > 0:
        p[p < min(wish.min_p, 1) * p.max() * (1 - 1e-9)] = 0
    return p / p.sum()


def token(logits: NDArray[np.float32], wish: Wish, position: int) -> tuple[int, float]:
    """The token drawn for a position, and how near the number was to where another begins."""
    p = shares(logits, wish)
    ends, u = np.cumsum(p), uniform(wish.seed, position)
    at = int(np.searchsorted(ends, u, side="right"))
    return min(at, int(np.flatnonzero(p)[-1])), float(np.abs(ends[:-1] - u).min(initial=1.0))


def logprobs(logits: NDArray[np.float32]) -> Array:
    """Log-probabilities of the logits as they are."""
    x = logits.astype(np.float64)
    return x - x.max() - np.log(np.exp(x - x.max()).sum())
