"""An output against the reference's: integers and booleans exactly, floats within a tolerance.

Integers may differ by the steps a tolerance allows, booleans never.

NaN matches nothing. An infinity matches itself. Otherwise an element fits if it differs by at most
`atol + rtol * |expected|`. And the error as a whole must be small beside the spread of the expected
values, so that no constant passes however wide a tolerance was asked for.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from bedstone.prove.tensors import as_bytes, as_numbers
from bedstone.spec.element import ELEMENTS
from bedstone.spec.workload import Tolerance

RTOL: Mapping[str, float] = {
    "float64": 1e-7,
    "float32": 1e-3,
    "float16": 1e-2,
    "bfloat16": 2e-2,
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
    "float8_e8m0fnu": 1.0,
    "float4_e2m1": 0.5,
    "float4_e2m1fn_x2": 0.5,
}
"""Relative tolerance by element type: a few roundings of the type, or of TF32 for float32."""

_TINY = 1e-8


@dataclass(frozen=True, slots=True)
class Metrics:
    """How far one output is from the reference's.

    `worst` is the index of the element farthest beyond its bound, `matched` the share that fits,
    `spread` the root mean square of the error over the standard deviation of the expected values.
    """

    fits: bool
    max_absolute_error: float = 0.0
    max_relative_error: float = 0.0
    worst: tuple[int, ...] = ()
    expected: float = 0.0
    found: float = 0.0
    matched: float = 1.0
    spread: float = 0.0
    reasons: tuple[str, ...] = field(default=())

    def json(self) -> dict[str, Any]:
        """As a Trace keeps it."""
        return asdict(self)


def judge(
    found: torch.Tensor, expected: torch.Tensor, dtype: str, tolerance: Tolerance | None = None
) -> Metrics:
    """Hold one output against the reference's.

    Args:
        found: Of the declared element type and shape.
        expected: The reference's, of the same.
        dtype: The element type, as the Definition names it.
        tolerance: How far apart they may be; by element type where None.

    Returns:
        Whether it fits, and how well.
    """
    if expected.numel() == 0:
        return Metrics(fits=True)
    tolerance = tolerance or Tolerance()
    if ELEMENTS[dtype].kind != "float":
        return _exact(found, expected, tolerance.steps)
    return _close(as_numbers(found), as_numbers(expected), dtype, tolerance)


def _exact(found: torch.Tensor, expected: torch.Tensor, steps: int) -> Metrics:
    # compared as they are: as floats, large integers would blur
    differ = found != expected
    if steps and found.dtype != torch.bool:
        # a difference of integers may overflow; one within a few steps does not
        differ &= (found.to(torch.int64) - expected.to(torch.int64)).abs() > steps
    count = int(differ.sum())
    if found.dtype == torch.bool:
        # a byte that is neither 0 nor 1 reads as true
        count += int((as_bytes(found.contiguous()) > 1).sum())
    if count == 0:
        return Metrics(fits=True)
    distance = (found.to(torch.float64) - expected.to(torch.float64)).abs()
    at = int(distance.argmax())
    return Metrics(
        fits=False,
        max_absolute_error=float(distance.max()),
        max_relative_error=float((distance / (expected.to(torch.float64).abs() + _TINY)).max()),
        worst=_index(at, expected),
        expected=float(expected.reshape(-1)[at]),
        found=float(found.reshape(-1)[at]),
        matched=1 - count / expected.numel(),
        reasons=(f"{count} of {expected.numel()} values differ",),
    )


def _close(
    found: torch.Tensor, expected: torch.Tensor, dtype: str, tolerance: Tolerance
) -> Metrics:
    same = found == expected
    error = torch.where(same, torch.zeros_like(expected), (found - expected).abs())
    finite = expected[expected.isfinite()]
    rtol = RTOL[dtype] if tolerance.rtol is None else tolerance.rtol
    atol = tolerance.atol
    if atol is None:
        atol = rtol * float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    bound = atol + rtol * expected.abs()
    fits = same | ((error <= bound) & found.isfinite() & expected.isfinite())
    matched = float(fits.double().mean())
    spread, limit = _spread(error[expected.isfinite()], finite, dtype, tolerance)
    at = int(torch.where(fits, error / (bound + _TINY), torch.inf).argmax())
    at = _worst(error, bound, fits) if not bool(fits.all()) else at
    reasons = _reasons(matched, tolerance, spread, limit)
    relative = error / (expected.abs() + _TINY)
    return Metrics(
        fits=not reasons,
        max_absolute_error=float(error.max()),
        max_relative_error=float(relative[expected.isfinite()].max()) if finite.numel() else 0.0,
        worst=_index(at, expected),
        expected=float(expected.reshape(-1)[at]),
        found=float(found.reshape(-1)[at]),
        matched=matched,
        spread=spread,
        reasons=reasons,
    )


def _worst(error: torch.Tensor, bound: torch.Tensor, fits: torch.Tensor) -> int:
    """The misfit farthest beyond its bound; one that is no number at all comes first."""
    beyond = torch.where(fits, torch.zeros_like(error), error / (bound + _TINY))
    return int(torch.nan_to_num(beyond, nan=torch.inf).argmax())


def _spread(
    error: torch.Tensor, expected: torch.Tensor, dtype: str, tolerance: Tolerance
) -> tuple[float, float]:
    """The error beside the spread of the expected values, and the most it may be.

    Values that are all alike but for rounding have no spread to speak of: then the size of the
    type's rounding stands for it.
    """
    if expected.numel() < 2:
        return 0.0, tolerance.spread
    size = float(expected.double().square().mean().sqrt())
    deviation = float(expected.double().std(correction=0))
    rounding = RTOL[dtype] / 4 * size
    rms = float(error.double().square().mean().sqrt())
    return rms / max(deviation, rounding, _TINY * _TINY), tolerance.spread


def _reasons(matched: float, tolerance: Tolerance, spread: float, limit: float) -> tuple[str, ...]:
    reasons = []
    if matched < tolerance.matched:
        reasons.append(f"{matched:.6f} of the values fit, expected {tolerance.matched:g}")
    if not spread <= limit:
        reasons.append(f"the error is {spread:.3g} of the values' spread, expected {limit:g}")
    return tuple(reasons)


def _index(at: int, tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in torch.unravel_index(torch.tensor(at), tensor.shape))
