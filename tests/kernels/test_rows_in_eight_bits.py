"""Rows by quantized matrices in the numerics that rounds: activations have eight bits."""

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bedstone.spec.dtype import FORMATS, FormatName
from kernels.harness import poison
from kernels.reference import Array, silu, weights
from kernels.test_linear import K, assert_near

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

pytestmark = pytest.mark.gpu
BLOCKS = {name: fmt.block for name, fmt in FORMATS.items() if fmt.quantized}
formats = pytest.mark.parametrize("name", sorted(BLOCKS))


def coded(x: Array) -> Array:
    """What eight bits and a scale for each 32 values leave of float32 values, in float64."""
    blocks = x.reshape(len(x), -1, 32)
    scale = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.rint(blocks.astype(np.float64) * (np.float32(1) / scale))
    return np.where(scale > 0, codes * scale, 0.0).reshape(x.shape)


def product(library: "GpuLibrary", name: FormatName, x: Array, w: Array) -> Array:
    y = poison((len(x), len(w)), np.float32)
    library.call(f"linear_{name}", x=x, w=w, y=y, rows=len(x), k=x.shape[1], n=len(w))
    return y


@formats
@pytest.mark.parametrize("k", [256, 2048 + 256, 12288, 40960])
def test_products_are_near_float64_and_a_row_hangs_on_no_other(
    half_library: "GpuLibrary", name: FormatName, k: int
) -> None:
    rng = np.random.default_rng(k)
    k += BLOCKS[name]
    w, values = weights(name, 37, k, rng)
    x = rng.standard_normal((9, k)).astype(np.float32)
    x[4, 64:96] = 0
    full = product(half_library, name, x, w)
    assert_near(full, coded(x) @ values.T)
    for rows in (slice(1), slice(2), slice(3, 8), slice(8, 9)):
        np.testing.assert_array_equal(product(half_library, name, x[rows], w), full[rows])


@formats
def test_more_outputs_than_wait_at_a_time(half_library: "GpuLibrary", name: FormatName) -> None:
    rng = np.random.default_rng(9)
    w, values = weights(name, 264 * 150 + 7, 2048, rng)
    x = rng.standard_normal((3, 2048)).astype(np.float32)
    full = product(half_library, name, x, w)
    assert_near(full, coded(x) @ values.T)
    np.testing.assert_array_equal(product(half_library, name, x[1:2], w), full[1:2])


@formats
@pytest.mark.parametrize("rows", [1, 6])
def test_parts_and_a_gated_unit_are_their_products(
    half_library: "GpuLibrary", name: FormatName, rows: int
) -> None:
    rng = np.random.default_rng(rows)
    k, sizes = K[name], (300, 9, 45)
    mats = [weights(name, n, k, rng)[0] for n in sizes]
    x = rng.standard_normal((rows, k)).astype(np.float32)
    made = {f"y{i}": poison((rows, n), np.float32) for i, n in enumerate(sizes)}
    given = {f"w{i}": w for i, w in enumerate(mats)} | {f"n{i}": n for i, n in enumerate(sizes)}
    half_library.call(f"parts3_{name}", x=x, **given, **made, rows=rows, k=k)
    for y, w in zip(made.values(), mats, strict=True):
        np.testing.assert_array_equal(y, product(half_library, name, x, w))

    gate, up = mats[0], mats[0][::-1].copy()
    y = poison((rows, 300), np.float32)
    half_library.call(f"glu_{name}", x=x, wg=gate, wu=up, y=y, rows=rows, k=k, n=300, act=0)
    parts = [product(half_library, name, x, w) for w in (gate, up)]
    assert_near(y, silu(parts[0].astype(np.float64)) * parts[1])


@formats
def test_a_value_that_is_not_finite_stays_so(half_library: "GpuLibrary", name: FormatName) -> None:
    rng = np.random.default_rng(2)
    w, _ = weights(name, 40, K[name], rng)
    x = rng.standard_normal((4, K[name])).astype(np.float32)
    x[1, 3], x[2, 40] = np.nan, np.inf
    for rows in (slice(1, 2), slice(None)):
        y = product(half_library, name, x[rows], w)
        finite = np.isfinite(x[rows]).all(axis=1)
        assert np.isfinite(y[finite]).all()
        assert not np.isfinite(y[~finite]).any()
