"""Float texts and rounding, against NumPy where it has the same notion."""

import numpy as np
import pytest

from bedstone.errors import ManifestError
from bedstone.spec.number import f32_text, f64_text, round_f32


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e12, "1000000000000.0"),
        (1e13, "1e+13"),
        (-0.0, "-0.0"),
        (0.0, "0.0"),
        (-1.5e-9, "-1.5e-9"),
        (3.4028234663852886e38, "3.4028235e+38"),
        (1.401298464324817e-45, "1e-45"),
        (16777216.0, "16777216.0"),
        (1234.5, "1234.5"),
    ],
)
def test_a_float32_in_its_fewest_digits(value: float, text: str) -> None:
    assert f32_text(round_f32(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2.0"),
        (1e-5, "0.00001"),
        (1e-6, "1e-6"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.25e22, "1.25e+22"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_a_double_in_its_fewest_digits(value: float, text: str) -> None:
    assert f64_text(value) == text


def every_kind_of_float32() -> list[float]:
    bits = np.random.default_rng(7).integers(2**31, size=3000).tolist()
    powers = [exponent << 23 for exponent in range(255)] + [1 << bit for bit in range(23)]
    numbers = np.array([*bits, *powers], dtype=np.uint32).view(np.float32)
    return [float(number) for number in numbers if np.isfinite(number)]


def test_no_float32_has_fewer_digits_than_numpy_finds() -> None:
    for value in every_kind_of_float32():
        text = f32_text(value)
        shortest = np.format_float_scientific(np.float32(value), unique=True, trim="-")
        assert round_f32(float(text)) == value
        assert float(text) == float(shortest), value


@pytest.mark.parametrize(
    "value", [2**24 + 1, 2**53 + 1, 2**54 + 2**30 + 1, 2**64 - 1, -(2**63), 0x8000_0080_0000_0001]
)
def test_an_integer_rounds_to_float32_once(value: int) -> None:
    kind = np.uint64 if value > 0 else np.int64
    assert round_f32(value) == float(kind(value).astype(np.float32))


def test_a_tie_of_the_double_is_not_a_tie_of_the_integer() -> None:
    # To a double this rounds to the tie 2**60 + 2**36, which float32 then takes down to 2**60.
    value = 2**60 + 2**36 + 1
    assert float(value) == 2**60 + 2**36
    assert round_f32(value) == 2**60 + 2**37


@pytest.mark.parametrize("value", [3.4028236e38, -1e300, 10**400])
def test_beyond_float32_is_no_infinity(value: float) -> None:
    with pytest.raises(OverflowError):
        round_f32(value)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("write", [f32_text, f64_text])
def test_what_json_cannot_say_is_not_written(write: object, value: float) -> None:
    assert callable(write)
    with pytest.raises(ManifestError, match="finite"):
        write(value)
