"""Times of one thing, in few numbers. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of `count` samples, their quartiles and ends."""

    median: float
    low: float
    high: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Spread":
        """The spread of one sample at least."""
        ordered = sorted(samples)
        low, high = _quartiles(ordered)
        return cls(statistics.median(ordered), low, high, ordered[0], ordered[-1], len(ordered))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """How many times as long theirs took, sample by sample: those taken one after the other."""
    return Spread.of([b / a for a, b in zip(ours, theirs, strict=True)])


def _quartiles(ordered: Sequence[float]) -> tuple[float, float]:
    if len(ordered) < 2:
        return ordered[0], ordered[0]
    low, _, high = statistics.quantiles(ordered, n=4, method="inclusive")
    return low, high
