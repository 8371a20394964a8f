"""The quantized form of activations, and the products that read it."""

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.graph.parse import parse
from bedstone.oracle.quantized import dequantize, quantize
from bedstone.oracle.step import StepOracle

F32 = np.dtype(np.float32)


def test_the_largest_magnitude_of_a_block_is_127() -> None:
    x = np.zeros((1, 64), np.float32)
    x[0, 3], x[0, 40], x[0, 41] = -254.0, 127.0, 1.0
    codes, scales = quantize(x)
    assert scales.tolist() == [[2.0, 1.0]]
    assert (codes[0, 3], codes[0, 40], codes[0, 41]) == (-127, 127, 1)
    np.testing.assert_array_equal(dequantize(codes, scales, F32), x)


def test_halves_round_away_from_zero() -> None:
    x = np.zeros((1, 32), np.float32)
    x[0, :6] = [127, 0.5, -0.5, 1.5, -2.5, np.nextafter(np.float32(0.5), np.float32(0))]
    codes, _ = quantize(x)
    assert codes[0, :6].tolist() == [127, 1, -1, 2, -3, 0]


def test_a_block_of_zeros_has_scale_and_codes_zero() -> None:
    codes, scales = quantize(np.zeros((2, 32)))
    assert not codes.any()
    assert not scales.any()


def test_rows_are_whole_blocks() -> None:
    with pytest.raises(CallerError, match="rows of 48 values are no whole blocks of 32"):
        quantize(np.zeros((1, 48)))


PRODUCTS = """\
graph(model=m, form=decode, rows=1, outputs=(y, next))
x.w = const(format=f32, shape=(1, 64))
coarse = const(format=q8_0, shape=(3, 64))
exact = const(format=bf16, shape=(3, 64))
ids = carried(rows=1)
x = embed(ids=ids, table=x.w)
c = linear(x=x, w=coarse)
e = linear(x=x, w=exact)
y = add(a=c, b=e)
next = argmax(x=y)
"""


def test_only_products_with_quantized_matrices_read_the_quantized_form() -> None:
    rng = np.random.default_rng(7)
    constants = {"x.w": rng.normal(size=(1, 64)).astype(np.float32)}
    constants["coarse"] = constants["exact"] = rng.normal(size=(3, 64)).astype(np.float32)
    oracle = StepOracle(parse(PRODUCTS), constants, numerics="quantized")
    oracle.run({"ids": [0]}, {})
    x, w = constants["x.w"].astype(np.float64), constants["coarse"].astype(np.float64)
    np.testing.assert_allclose(oracle.tensors["e"], x @ w.T, rtol=1e-14)
    rounded = dequantize(*quantize(x), np.dtype(np.float64))
    np.testing.assert_allclose(oracle.tensors["c"], rounded @ w.T, rtol=1e-14)
    assert 0 < np.abs(oracle.tensors["c"] - oracle.tensors["e"]).max() < 0.3
    precise = StepOracle(parse(PRODUCTS), constants)
    precise.run({"ids": [0]}, {})
    np.testing.assert_array_equal(precise.tensors["c"], precise.tensors["e"])
