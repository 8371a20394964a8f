"""norm and add_norm: against float64, fused against unfused bit for bit."""

import ml_dtypes
import numpy as np
import pytest

from kernels.harness import Library, poison
from kernels.reference import norm
from kernels.test_glu import quantized_outputs


def call_norm(
    library: Library, x: np.ndarray, w: np.ndarray, eps: float, *, unit: int = 0, plus_one: int = 0
) -> np.ndarray:
    y = poison(x.shape, np.float32)
    rows, width = x.shape
    sizes = {"rows": rows, "width": width, "unit": unit or width, "eps": eps, "plus_one": plus_one}
    library.call("norm", x=x, w=w, y=y, **sizes)
    return y


@pytest.mark.parametrize(("width", "unit"), [(96, 96), (77, 77), (576, 64), (60, 12), (4096, 4096)])
@pytest.mark.parametrize("plus_one", [0, 1])
def test_norm_is_near_float64(library: Library, width: int, unit: int, plus_one: int) -> None:
    rng = np.random.default_rng(width)
    x = (50 * rng.standard_normal((3, width))).astype(np.float32)
    w = rng.standard_normal(unit).astype(np.float32)
    y = call_norm(library, x, w, 1e-5, unit=unit, plus_one=plus_one)
    np.testing.assert_allclose(y, norm(x, w, unit, 1e-5, plus_one), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("width", "unit"), [(96, 96), (576, 64)])
def test_a_fused_norm_is_its_parts(library: Library, width: int, unit: int) -> None:
    rng = np.random.default_rng(unit)
    rows = 3
    x, d = (rng.standard_normal((rows, width)).astype(np.float32) for _ in range(2))
    w = rng.standard_normal(unit).astype(np.float32)
    sizes = {"rows": rows, "width": width, "unit": unit, "eps": 1e-6, "plus_one": 0}
    total, y = poison(x.shape, np.float32), call_norm(library, x + d, w, 1e-6, unit=unit)
    library.call("add", a=x, b=d, y=total, count=x.size)
    np.testing.assert_array_equal(total, x + d)
    apart = quantized_outputs(rows, width)
    library.call("quantize", x=y, **apart, rows=rows, width=width)
    for entry, inputs in (("norm", {"x": total}), ("add_norm", {"x": x, "d": d})):
        for form in ("", "_q", "_fq"):
            out = {} if form == "" else quantized_outputs(rows, width)
            if form != "_q":
                out["y"] = poison(x.shape, np.float32)
            if entry == "add_norm":
                out["sum"] = poison(x.shape, np.float32)
            library.call(entry + form, **inputs, w=w, **out, **sizes)
            for name, made in out.items():
                expected = {"y": y, "sum": total, **apart}[name]
                np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("over", ["x", "d"])
@pytest.mark.parametrize("pre", [False, True])
def test_a_sum_may_take_the_place_of_an_addend(library: Library, over: str, *, pre: bool) -> None:
    rng = np.random.default_rng(7)
    x, d = rng.standard_normal((2, 3, 100)).astype(np.float32)
    w, dw = rng.standard_normal((2, 100)).astype(np.float32)
    args = {"w": w, "rows": 3, "width": 100, "unit": 100, "eps": 1e-6, "plus_one": 1}
    args |= {"dw": dw, "pre_eps": 1e-5, "pre_plus_one": 0} if pre else {}
    entry = "add_norm_pre" if pre else "add_norm"
    made = []
    for place in (None, over):
        inputs = {"x": x.copy(), "d": d.copy()}
        total = poison(x.shape, np.float32) if place is None else inputs[place]
        y = poison(x.shape, np.float32)
        library.call(entry, **inputs, sum=total, y=y, **args)
        made.append((total, y))
    for apart, inside in zip(*made, strict=True):
        np.testing.assert_array_equal(inside, apart)


def test_c11_one_is_added_to_the_weight_in_float32(library: Library) -> None:
    x = np.array([[1, *[0] * 8]], np.float32)
    w = np.array([15.8125, *[0] * 8], np.float32)
    y = call_norm(library, x, w, 0.0, plus_one=1)
    assert y[0, 0] == 50.4375
    assert float(y[0, 0].astype(ml_dtypes.bfloat16)) == 50.5


def test_c12_the_offset_is_added_once_where_declared(library: Library) -> None:
    x = np.array([[1, 2, 3, 4]], np.float32)
    plain = [0.36514835, 0.73029669, 1.09544504, 1.46059339]
    for w, plus_one, factor in ((0, 1, 1), (1, 0, 1), (1, 1, 2)):
        y = call_norm(library, x, np.full(4, w, np.float32), 1e-6, plus_one=plus_one)
        np.testing.assert_allclose(y[0], np.array(plain) * factor, rtol=1e-6)


def test_c13_the_weight_multiplies_before_any_rounding_to_bfloat16(library: Library) -> None:
    x = np.array([[0.3, -1.7, 2.9, 0.05]], ml_dtypes.bfloat16).astype(np.float32)
    w = np.array([1.0078125, 0.99609375, 1.0234375, 15.8125], np.float32)
    y = call_norm(library, x, w, 1e-6)[0].astype(ml_dtypes.bfloat16).astype(np.float32)
    assert y.tolist() == [0.1796875, -1, 1.7578125, 0.46875]


@pytest.mark.parametrize(("eps", "expected"), [(1e-6, 0.70710678), (1e-5, 0.30151134)])
def test_c14_epsilon_is_the_one_given(library: Library, eps: float, expected: float) -> None:
    y = call_norm(library, np.full((1, 4), 1e-3, np.float32), np.ones(4, np.float32), eps)
    np.testing.assert_allclose(y[0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (2, [0.84852814, 1.13137085, 0.84852814, 1.13137085]),
        (4, [1.19404463, 1.5920595, 0.11940446, 0.15920595]),
    ],
)
def test_c25_the_unit_says_what_is_normed(
    library: Library, unit: int, expected: list[float]
) -> None:
    q = np.array([[3, 4, 0.3, 0.4]], np.float32)
    y = call_norm(library, q, np.ones(unit, np.float32), 0.0, unit=unit)
    np.testing.assert_allclose(y[0], expected, rtol=1e-6)
