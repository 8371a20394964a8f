"""Times of calls: what is reported of them, and what no call can be faster than."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from bedstone.errors import CallerError

LEAST_FOR_P99 = 100
"""Calls below which the highest percentile is little more than the largest value."""

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_MOST_FLUSHED = 512 * 2**20
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Summary:
    """Milliseconds of `n` calls; `p99` is None where they are too few to speak of one."""

    n: int
    p50: float
    p95: float
    p99: float | None
    least: float
    mean: float


def summarize(milliseconds: Sequence[float]) -> Summary:
    """The summary of at least one time; percentiles lie between the two nearest calls."""
    ordered = sorted(milliseconds)
    return Summary(
        n=len(ordered),
        p50=percentile(ordered, 0.50),
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99) if len(ordered) >= LEAST_FOR_P99 else None,
        least=ordered[0],
        mean=sum(ordered) / len(ordered),
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie, linear between neighbours."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def floor_ms(moved: int, bandwidth: float) -> float:
    """The least milliseconds in which a device of `bandwidth` bytes/s moves `moved` bytes."""
    return moved / bandwidth * 1e3


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; a `CallerError` where a value is not above 0, or there is none."""
    if not values or min(values) <= 0:
        raise CallerError(f"a mean of ratios needs values above 0, found {list(values)[:5]}")
    return exp(sum(map(log, values)) / len(values))


def cpu_flush_bytes(caches: Path = _CACHES) -> int:
    """Bytes that, once written, leave nothing else in this CPU's caches: twice the largest."""
    sizes = [_bytes(path) for path in caches.glob("index*/size")]
    return min(2 * max(sizes, default=32 * 2**20), _MOST_FLUSHED)


def _bytes(path: Path) -> int:
    text = path.read_text().strip()
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1:] in _UNITS else int(text or 0)
