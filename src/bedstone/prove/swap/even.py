"""Whether B is off as roundings are: in all spans alike, or nowhere more than A sways. Pure.

An index that is wrong in one place is far less than a percent of a long sum, and KL sees nothing.
But it is off there alone, while other roundings or another formula are off everywhere.
"""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from bedstone.prove.swap.replay import SpanResult

STEADY = 32
"""So many times the error of most spans alike, or of A with other last bits, is another kind."""

ROUNDED = 1e-5
"""Relative errors up to this are roundings of float32 in a sum, whatever others have."""

Kind = tuple[str, tuple[str, ...], tuple[str, ...]]


def uneven(of_b: Iterable[SpanResult], swayed: Iterable[SpanResult]) -> Iterator[SpanResult]:
    """The worst span of each kind in which B is off as no rounding is."""
    allowed = {kind: max(map(_error, found)) for kind, found in _kinds(swayed).items()}
    for kind, found in _kinds(of_b).items():
        worst = max(found, key=_error)
        usual = median(map(_error, found))
        if _error(worst) > max(ROUNDED, STEADY * allowed.get(kind, 0.0), STEADY * usual):
            yield worst


def _kinds(results: Iterable[SpanResult]) -> Mapping[Kind, list[SpanResult]]:
    kinds: dict[Kind, list[SpanResult]] = {}
    for result in results:
        span = result.span
        kinds.setdefault((span.program, span.a.ops, span.b.ops), []).append(result)
    return kinds


def _error(result: SpanResult) -> float:
    return result.numbers.relative
