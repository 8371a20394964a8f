"""Floats as the manifest holds and writes them: rounding to float32, shortest digits."""

import math
import struct
from decimal import Decimal
from functools import lru_cache

from bedstone.errors import ManifestError

_DOUBLE_BITS = 53


def round_f32(value: float) -> float:
    """The float32 nearest to `value` (ties to even), as a double.

    An `OverflowError` where that is an infinity.
    """
    if isinstance(value, int):
        value = _sticky(value)
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def f32_text(value: float) -> str:
    """A float32 in the fewest digits that read back as it: `0.1`, `1e-7`, `1e+13`."""
    # Zeros and what is not finite stay out of a cache in which -0.0 would find 0.0.
    plain = value == 0 or not math.isfinite(value)
    decimal = Decimal(value) if plain else _shortest_f32(value)
    return _text(decimal, lowest=-6, highest=13)


def f64_text(value: float) -> str:
    """A double in the fewest digits that read back as it: `2.0`, `1e-6`, `1e+16`."""
    return _text(Decimal(repr(value)), lowest=-5, highest=16)


def _sticky(value: int) -> float:
    """A double that rounds to float32 as the integer itself would, not twice rounded.

    What a double cannot hold is kept as one sticky bit below the bits float32 keeps.
    """
    excess = value.bit_length() - _DOUBLE_BITS
    if excess <= 0:
        return float(value)
    kept, lost = divmod(abs(value), 1 << excess)
    magnitude = float((kept | (lost != 0)) << excess)
    return -magnitude if value < 0 else magnitude


@lru_cache(maxsize=4096)
def _shortest_f32(value: float) -> Decimal:
    exact = Decimal(value)
    for digits in range(9):
        nearest = Decimal(f"{value:.{digits}e}")
        # Below a power of two the floats lie closer: the nearest decimal may miss, the next not.
        step = Decimal((0, (1,), nearest.adjusted() - digits))
        close = [d for d in (nearest, nearest - step, nearest + step) if _reads_as(d, value)]
        if close:
            return min(close, key=lambda d: abs(d - exact))
    return exact


def _reads_as(decimal: Decimal, value: float) -> bool:
    try:
        return round_f32(float(decimal)) == value
    except OverflowError:
        return False


def _text(decimal: Decimal, lowest: int, highest: int) -> str:
    """`decimal` positionally where its point falls in `lowest` < point <= `highest`."""
    if not decimal.is_finite():
        raise ManifestError(f"expected a finite number in the manifest, found {decimal}")
    minus = "-" if decimal.is_signed() else ""
    figures = "".join(map(str, decimal.as_tuple().digits)).rstrip("0")
    if not figures:
        return f"{minus}0.0"
    point = decimal.adjusted() + 1
    if len(figures) <= point <= highest:
        return f"{minus}{figures.ljust(point, '0')}.0"
    if 0 < point <= highest:
        return f"{minus}{figures[:point]}.{figures[point:]}"
    if lowest < point <= 0:
        return f"{minus}0.{'0' * -point}{figures}"
    fraction = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{minus}{figures[0]}{fraction}e{point - 1:+d}"
