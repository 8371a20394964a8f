"""How far B's bytes are from A's: bit by bit, then by value, then by how much. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.arrays import numpy_dtype
from bedstone.spec.dtype import DType

Numbers = NDArray[np.float64]
Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Distance:
    """Elements compared, of them those of other bits and of another value, and the worst error.

    `broken` are not finite where A's are. `largest` is the largest absolute error, `peak` that
    over the root mean square of A's values, and `relative` the error's own root mean square over
    it. These three take in what is finite on both sides.
    """

    elements: int = 0
    bits: int = 0
    values: int = 0
    broken: int = 0
    largest: float = 0.0
    peak: float = 0.0
    relative: float = 0.0


def distance(a: NDArray[np.uint8], b: NDArray[np.uint8], dtype: DType) -> Distance:
    """Hold bytes [n] of B against A's, as elements of a type."""
    size = numpy_dtype(dtype).itemsize
    bits = (a != b).reshape(-1, size).any(axis=1)
    x, y = _numbers(a, dtype), _numbers(b, dtype)
    finite = np.isfinite(x) & np.isfinite(y)
    both_nan = np.isnan(x) & np.isnan(y)
    error = np.abs(y[finite] - x[finite])
    scale = float(np.sqrt(np.mean(np.square(x[finite])))) if finite.any() else 0.0
    rms = float(np.sqrt(np.mean(np.square(error)))) if error.size else 0.0
    return Distance(
        elements=x.size,
        bits=int(bits.sum()),
        values=int(((x != y) & ~both_nan).sum()),
        broken=int((np.isfinite(x) & ~np.isfinite(y)).sum()),
        largest=float(error.max(initial=0.0)),
        peak=_over(float(error.max(initial=0.0)), scale),
        relative=_over(rms, scale),
    )


def near(
    a: NDArray[np.uint8], b: NDArray[np.uint8], dtype: DType, most: float
) -> NDArray[np.bool_]:
    """Of blocks [n, bytes] of B those that hold numbers where A's do, none far from A's.

    `most` is how far a value may be off, over the root mean square of its block of A.
    """
    x, y = _numbers(a, dtype), _numbers(b, dtype)
    finite = np.isfinite(x) & np.isfinite(y)
    error = np.abs(np.subtract(y, x, out=np.zeros_like(x), where=finite)).max(axis=1)
    squares = np.square(x, out=np.zeros_like(x), where=finite)
    scale = np.sqrt(squares.sum(axis=1) / np.maximum(finite.sum(axis=1), 1))
    kept = ~(np.isfinite(x) & ~np.isfinite(y)).any(axis=1)
    return np.asarray(kept & (error <= most * scale))


def outside(values: NDArray[np.generic], low: float | None, high: float | None) -> int:
    """How many of values [n] are below or above what is allowed; None is open, NaN is outside."""
    held = values.astype(np.float64)
    least, most = (-np.inf if low is None else low), (np.inf if high is None else high)
    return int((~((held >= least) & (held <= most))).sum())


def worst(distances: Iterable[Distance]) -> Distance:
    """Counts added up, and the worst errors of any."""
    held = list(distances)
    return Distance(
        elements=sum(d.elements for d in held),
        bits=sum(d.bits for d in held),
        values=sum(d.values for d in held),
        broken=sum(d.broken for d in held),
        largest=max((d.largest for d in held), default=0.0),
        peak=max((d.peak for d in held), default=0.0),
        relative=max((d.relative for d in held), default=0.0),
    )


def _over(error: float, scale: float) -> float:
    """An error as a share of a scale; any error is the whole of none."""
    return error / scale if scale else float(error > 0)


@dataclass(frozen=True, slots=True)
class LogitDistance:
    """Rows compared; the largest KL divergence from A in nats; flips of the likeliest token.

    `differing` rows have another value, `broken` ones are not finite where A's are, and in `blind`
    ones A's are not finite, so that nothing can be said. `margin` is the largest lead in nats that
    a flipped token had over the next one in A; `over` counts rows whose divergence is over their
    limit, `beyond` those of them whose token flips. `divergences` are those of all rows: infinite
    in broken ones, NaN in blind ones.
    """

    rows: int = 0
    differing: int = 0
    kl: float = 0.0
    flips: int = 0
    margin: float = 0.0
    over: int = 0
    beyond: int = 0
    broken: int = 0
    blind: int = 0
    divergences: tuple[float, ...] = ()

    def quantile(self, share: float) -> float:
        """The divergence that so many of the rows that can be told do not exceed."""
        every = sorted(d for d in self.divergences if np.isfinite(d))
        return every[min(int(share * len(every)), len(every) - 1)] if every else 0.0


def logit_distance(a: Logits, b: Logits, limit: float | Numbers) -> LogitDistance:
    """Hold logits [rows, vocab] of B against A's; `limit` in nats is one, or one a row [rows]."""
    told = np.isfinite(a).all(axis=1)
    broken = told & ~np.isfinite(b).all(axis=1)
    good = told & ~broken
    p, q = _log_softmax(a[good]), _log_softmax(b[good])
    kl = np.where(told, np.inf, np.nan)
    kl[good] = np.maximum((np.exp(p) * (p - q)).sum(axis=1), 0.0)
    flipped = np.zeros(len(a), np.bool_)
    flipped[good] = p.argmax(axis=1) != q.argmax(axis=1)
    top = np.partition(p, -2, axis=1)[:, -2:]
    over = kl > limit
    return LogitDistance(
        rows=len(a),
        differing=int((a[good] != b[good]).any(axis=1).sum() + broken.sum()),
        kl=float(kl.max(initial=0.0, where=told)),
        flips=int(flipped.sum()),
        margin=float((top[:, -1] - top[:, 0]).max(initial=0.0, where=flipped[good])),
        over=int(over.sum()),
        beyond=int((flipped & over).sum()),
        broken=int(broken.sum()),
        blind=int((~told).sum()),
        divergences=tuple(kl.tolist()),
    )


def worst_logits(distances: Iterable[LogitDistance]) -> LogitDistance:
    """Counts added up, and the worst of any."""
    held = list(distances)
    return LogitDistance(
        rows=sum(d.rows for d in held),
        differing=sum(d.differing for d in held),
        kl=max((d.kl for d in held), default=0.0),
        flips=sum(d.flips for d in held),
        over=sum(d.over for d in held),
        margin=max((d.margin for d in held), default=0.0),
        beyond=sum(d.beyond for d in held),
        broken=sum(d.broken for d in held),
        blind=sum(d.blind for d in held),
        divergences=tuple(each for d in held for each in d.divergences),
    )


def as_logits(data: NDArray[np.uint8], dtype: DType, rows: int) -> Logits:
    """Bytes [rows * vocab elements] as numbers [rows, vocab], none of which float32 rounds."""
    values = np.ascontiguousarray(data).view(numpy_dtype(dtype))
    return values.astype(np.float32).reshape(rows, -1)


def _log_softmax(narrow: Logits) -> Numbers:
    logits = narrow.astype(np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _numbers(data: NDArray[np.uint8], dtype: DType) -> Numbers:
    return np.ascontiguousarray(data).view(numpy_dtype(dtype)).astype(np.float64)
