"""How a token is drawn, obviously: a full sort, in float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.spec.frozen import Frozen

Array = NDArray[np.float64]
Logits = NDArray[Any]

_WORD = 2**32


class Wish(Frozen):
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
    """Philox 4x32-10 of words of 32 bits: four that count, two that are the key."""
    c, (low, high) = list(counter), key
    for _ in range(10):
        even, odd = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [odd // _WORD ^ c[1] ^ low, odd % _WORD, even // _WORD ^ c[3] ^ high, even % _WORD]
        low, high = (low + 0x9E3779B9) % _WORD, (high + 0xBB67AE85) % _WORD
    return c


def uniform(seed: int, position: int) -> float:
    """The number in [0, 1) that a seed of 64 bits and a position decide."""
    low, high = seed % _WORD, seed // _WORD % _WORD
    words = philox([position, 0, 0, 0], [low, high])
    return (words[1] * _WORD + words[0]) / 2.0**64


def scores(logits: Logits, wish: Wish) -> Array:
    """The logits [vocab] as edited, -inf where left out."""
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


def shares(logits: Logits, wish: Wish) -> Array:
    """The probability [vocab] that each token is drawn with."""
    made = scores(logits, wish)
    if np.isneginf(made).all():
        return _certain(logits.astype(np.float64))
    if not wish.temperature > 0:
        return _certain(made)
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.exp((made - made.max()) / wish.temperature)
    p[np.isneginf(made)] = 0
    order = np.lexsort((np.arange(len(made)), -made))
    p[order[wish.top_k if wish.top_k > 0 else len(made) :]] = 0
    p /= p.sum()
    # what reaches a share or is as likely as asked for but for rounding does so
    if wish.top_p < 1:
        count = int(np.searchsorted(np.cumsum(p[order]), wish.top_p * (1 - 1e-9))) + 1
        p[order[count:]] = 0
    if wish.min_p > 0:
        p[p < min(wish.min_p, 1) * p.max() * (1 - 1e-9)] = 0
    return np.asarray(p / p.sum(), np.float64)


def _certain(made: Array) -> Array:
    """The first of the largest, and no other."""
    return np.asarray(np.arange(len(made)) == made.argmax(), np.float64)


def draw(logits: Logits, wish: Wish, position: int) -> tuple[int, float]:
    """The token for a position, and how near the number came to where another begins.

    The token is -1 where a logit is not finite.
    """
    if not np.isfinite(logits).all():
        return -1, 1.0
    p = shares(logits, wish)
    ends, u = np.cumsum(p), uniform(wish.seed, position)
    at = int(np.searchsorted(ends, u, side="right"))
    return min(at, int(np.flatnonzero(p)[-1])), float(np.abs(ends[:-1] - u).min(initial=1.0))


def logprobs(logits: Logits) -> Array:
    """Log-probabilities [vocab] of the logits as they are."""
    x = logits.astype(np.float64)
    return np.asarray(x - x.max() - np.log(np.exp(x - x.max()).sum()), np.float64)
