"""Elementwise entries, whole rows and embeddings."""

import ml_dtypes
import numpy as np
import pytest

from bedstone.spec.dtype import FORMATS, FormatName
from kernels.harness import Library, poison
from kernels.reference import gelu_tanh, silu, softplus, weights

COUNTS = (1, 15, 4096, 4133)


def unary(library: Library, entry: str, x: np.ndarray, **scalars: float) -> np.ndarray:
    y = poison(x.shape, np.float32)
    library.call(entry, x=x, y=y, count=x.size, **scalars)
    return y


@pytest.mark.parametrize("count", COUNTS)
def test_sums_products_and_scales_are_exact(library: Library, count: int) -> None:
    a, b = np.random.default_rng(count).standard_normal((2, count)).astype(np.float32)
    for entry, expected in (("add", a + b), ("mul", a * b)):
        y = poison(a.shape, np.float32)
        library.call(entry, a=a, b=b, y=y, count=count)
        np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(unary(library, "copy_rows", a), a)
    np.testing.assert_array_equal(unary(library, "scale", a, by=55.5), a * np.float32(55.5))


@pytest.mark.parametrize("entry", ["add", "mul", "silu", "gelu_tanh", "sigmoid", "softplus"])
def test_a_result_may_take_the_place_of_an_operand(library: Library, entry: str) -> None:
    a, b = np.random.default_rng(9).standard_normal((2, 4133)).astype(np.float32)
    names = ("a", "b") if entry in ("add", "mul") else ("x",)
    apart = poison(a.shape, np.float32)
    library.call(entry, **dict(zip(names, (a, b), strict=False)), y=apart, count=a.size)
    for over in names:
        operands = dict(zip(names, (a.copy(), b.copy()), strict=False))
        library.call(entry, **operands, y=operands[over], count=a.size)
        np.testing.assert_array_equal(operands[over], apart)


def sweep() -> np.ndarray:
    dense = np.linspace(-30, 30, 60001)
    tiny = np.geomspace(1e-30, 1, 500)
    return np.concatenate([dense, tiny, -tiny]).astype(np.float32)


@pytest.mark.parametrize(
    ("entry", "exact", "ulps"),
    [
        ("silu", silu, 4),
        ("gelu_tanh", gelu_tanh, 24),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), 4),
        ("softplus", softplus, 4),
        ("softcap", lambda x: 3 * np.tanh(x / 3), 4),
    ],
)
def test_functions_are_within_ulps_of_float64(
    library: Library, entry: str, exact, ulps: int
) -> None:
    x = sweep()
    if entry == "gelu_tanh":
        x = x[x > -4.5]  # below it the float64 formula itself cancels
    y = unary(library, entry, x, **({"cap": 3.0} if entry == "softcap" else {}))
    expected = exact(x.astype(np.float64))
    unit = np.maximum(np.spacing(np.abs(expected).astype(np.float32)), np.float32(1e-38))
    assert (np.abs(y - expected) / unit).max() <= ulps


@pytest.mark.parametrize("entry", ["silu", "gelu_tanh", "sigmoid"])
def test_functions_at_the_ends(library: Library, entry: str) -> None:
    x = np.array([-np.inf, -1e30, -200, -100, 0, 100, 200, 1e30, np.inf, np.nan], np.float32)
    y = unary(library, entry, x)
    right = [1] * 4 if entry == "sigmoid" else x[5:9].tolist()
    assert y[5:9].tolist() == right
    assert np.isnan(y[9])
    assert (np.abs(y[1:4]) < 1e-35).all()
    assert y[4] == (0.5 if entry == "sigmoid" else 0)


def test_softplus_at_the_ends(library: Library) -> None:
    x = np.array([-np.inf, -1e30, -200, 0, 200, 1e30, np.inf, np.nan], np.float32)
    y = unary(library, "softplus", x)
    assert (np.abs(y[:3]) < 1e-35).all()
    np.testing.assert_allclose(y[3:7], [np.log(2), 200, 1e30, np.inf], rtol=1e-7)
    assert np.isnan(y[7])


def test_c17_final_logits_are_capped(library: Library) -> None:
    y = unary(library, "softcap", np.array([60, 30, 0, -60], np.float32), cap=30.0)
    np.testing.assert_allclose(y, [28.9208274, 22.8478247, 0, -28.9208274], rtol=2e-7)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("entry", "dtype"), [("cast_f16_f32", np.float16), ("cast_bf16_f32", ml_dtypes.bfloat16)]
)
def test_casts_are_exact(library: Library, entry: str, dtype: type, count: int) -> None:
    x = np.random.default_rng(count).standard_normal(count).astype(dtype)
    np.testing.assert_array_equal(unary(library, entry, x), x.astype(np.float32))


def test_every_half_float_is_read_right(library: Library) -> None:
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    y = unary(library, "cast_f16_f32", x)
    np.testing.assert_array_equal(y, x.astype(np.float32))


@pytest.mark.parametrize("name", FORMATS)
def test_embed_reads_rows_as_the_format_defines_them(library: Library, name: FormatName) -> None:
    rng = np.random.default_rng(0)
    width = 512 if FORMATS[name].quantized else 77
    w, values = weights(name, 9, width, rng)
    token = np.array([3, 0, 8, 3], np.int32)
    y = poison((4, width), np.float32)
    library.call(f"embed_{name}", token=token, w=w, y=y, rows=4, width=width)
    np.testing.assert_array_equal(y, values[token].astype(np.float32))
    scaled = poison(y.shape, np.float32)
    args = {"token": token, "w": w, "y": scaled, "rows": 4, "width": width}
    library.call(f"embed_scaled_{name}", **args, by=5.65685425)
    np.testing.assert_array_equal(scaled, y * np.float32(5.65685425))


@pytest.mark.parametrize("width", [1, 37, 64])
def test_rows_are_set_taken_and_added(library: Library, width: int) -> None:
    x = np.random.default_rng(width).standard_normal((3, width)).astype(np.float32)
    table = np.full((6, width), 2, np.float32)
    library.call(
        "set_rows", x=x, slot=np.array([4, -1, 0], np.int32), table=table, rows=3, width=width
    )
    np.testing.assert_array_equal(table[[4, 0]], x[[0, 2]])
    np.testing.assert_array_equal(table[[1, 2, 3, 5]], 2)
    y = poison((width,), np.float32)
    library.call("take_row", x=x, row=2, y=y, width=width)
    np.testing.assert_array_equal(y, x[1])
    total = poison(x.shape, np.float32)
    library.call("add_row", a=x, b=x[2].copy(), y=total, rows=3, width=width)
    np.testing.assert_array_equal(total, x + x[2])
