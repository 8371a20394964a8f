"""Products of coded activations: against float64 of the same codes and of weights as bfloat16."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from bedstone.library.coding import BF16
from bedstone.library.cuda.coded import BATCH_ROWS
from bedstone.spec.dtype import FormatName
from kernels.harness import poison
from kernels.reference import ACTS, Array, weights
from kernels.test_coded_mixture import (
    assert_forms_near,
    assert_near,
    codes,
    inputs,
    outputs,
)
from kernels.test_linear import K as ANY_K

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

pytestmark = pytest.mark.gpu
formats = pytest.mark.parametrize("name", sorted(BF16.formats))
by_boxes = pytest.mark.parametrize("suffix", ["_batch", "_tall"])

K: dict[FormatName, int] = {**ANY_K, "f16": 104, "bf16": 200}
"""Codes are read in eights."""

SIZES = (
    (1, 8, 17), (9, 72, 64), (16, 64, 300), (33, 1000, 65), (64, 2568, 48), (20, 136, 33000),
    (40, 136, 9000), (200, 136, 530), (300, 136, 530),
)  # fmt: skip
"""Rows, k and n of products by boxes: every width of a tile, ends of all three inside one."""

BY_BOXES = [(suffix, *sizes) for suffix in ("_batch", "_tall") for sizes in SIZES
            if suffix == "_tall" or sizes[0] <= BATCH_ROWS]  # fmt: skip


def matrix(name: FormatName, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A matrix as stored, and in float64 what the matrix units read of it."""
    w, values = weights(name, n, K[name], rng)
    return w, codes(values.astype(np.float32)).astype(np.float64)


def bf16_matrix(n: int, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    w = codes((rng.standard_normal((n, k)) / np.sqrt(k)).astype(np.float32))
    return w, w.astype(np.float64)


def biased(ns: Sequence[int], rng: np.random.Generator) -> list[Array]:
    return [rng.standard_normal(n).astype(np.float32) for n in ns]


@formats
@pytest.mark.parametrize("rows", [1, 9, 40, 130])
def test_a_product_of_each_format(gpu_library: "GpuLibrary", name: FormatName, rows: int) -> None:
    rng = np.random.default_rng(rows)
    n = 37
    w, values = matrix(name, n, rng)
    x, exact = inputs(rng, rows, K[name])
    y = poison((rows, n), np.float32)
    gpu_library.call(f"linear_q_{name}", xq=x, w=w, y=y, rows=rows, k=K[name], n=n)
    assert_near(y, exact @ values.T)


@formats
@pytest.mark.parametrize("form", ["", "_q", "_fq"])
def test_a_gated_unit_of_each_format(
    gpu_library: "GpuLibrary", name: FormatName, form: str
) -> None:
    rng = np.random.default_rng(3)
    rows, n = 21, 50
    (wg, gate), (wu, up) = matrix(name, n, rng), matrix(name, n, rng)
    x, exact = inputs(rng, rows, K[name], 2.0)
    made = outputs(form, "y", (rows, n))
    sizes = {"rows": rows, "k": K[name], "n": n, "act": 1}
    gpu_library.call(f"glu_q_{name}{form}", xq=x, wg=wg, wu=wu, **made, **sizes)
    assert_forms_near(made, "y", ACTS[1](exact @ gate.T) * (exact @ up.T))


@formats
def test_parts_with_biases_into_a_table(gpu_library: "GpuLibrary", name: FormatName) -> None:
    rng = np.random.default_rng(5)
    rows, ns = 19, (33, 16, 70)
    made = [matrix(name, n, rng) for n in ns]
    x, exact = inputs(rng, rows, K[name])
    check_parts(gpu_library, f"parts3_q_{name}_b_rows", x, exact, made, biased(ns, rng))


def check_parts(
    gpu_library: "GpuLibrary",
    entry: str,
    x: Array,
    exact: Array,
    made: Sequence[tuple[Array, Array]],
    biases: Sequence[Array],
) -> None:
    """Three products, the last to rows of a table of which one is nobody's."""
    rows, k = x.shape
    ns = [len(bias) for bias in biases]
    slot = np.random.default_rng(rows).permutation(2 * rows)[:rows].astype(np.int32)
    slot[rows // 2] = -1
    table = poison((2 * rows, ns[2]), np.float32)
    before = table.copy()
    y = [poison((rows, n), np.float32) for n in ns[:2]]
    given = {f"w{i}": w for i, (w, _) in enumerate(made)}
    given |= {f"bias{i}": bias for i, bias in enumerate(biases)}
    given |= {"y0": y[0], "y1": y[1], "table": table, "slot": slot}
    sizes = {"rows": rows, "k": k, **{f"n{i}": n for i, n in enumerate(ns)}}
    gpu_library.call(entry, xq=x, **given, **sizes)
    expected = [exact @ values.T + bias for (_, values), bias in zip(made, biases, strict=True)]
    for found, wanted in zip(y, expected, strict=False):
        assert_near(found, wanted)
    written = slot >= 0
    assert_near(table[slot[written]], expected[2][written])
    untouched = np.setdiff1d(np.arange(2 * rows), slot[written])
    assert table[untouched].tobytes() == before[untouched].tobytes()


@pytest.mark.parametrize(("suffix", "rows", "k", "n"), BY_BOXES)
def test_products_by_boxes(
    gpu_library: "GpuLibrary", suffix: str, rows: int, k: int, n: int
) -> None:
    rng = np.random.default_rng(n)
    (w, values), (wu, up) = bf16_matrix(n, k, rng), bf16_matrix(n, k, rng)
    x, exact = inputs(rng, rows, k)
    y = poison((rows, n), np.float32)
    gpu_library.call(f"linear_q_bf16{suffix}", xq=x, w=w, y=y, rows=rows, k=k, n=n)
    assert_near(y, exact @ values.T)
    made = outputs("_fq", "y", (rows, n))
    sizes = {"rows": rows, "k": k, "n": n, "act": 0}
    gpu_library.call(f"glu_q_bf16_fq{suffix}", xq=x, wg=w, wu=wu, **made, **sizes)
    assert_forms_near(made, "y", ACTS[0](exact @ values.T) * (exact @ up.T))


@by_boxes
def test_parts_by_boxes(gpu_library: "GpuLibrary", suffix: str) -> None:
    rng = np.random.default_rng(11)
    ns = (300, 40, 129)
    made = [bf16_matrix(n, 264, rng) for n in ns]
    x, exact = inputs(rng, 50, 264)
    check_parts(gpu_library, f"parts3_q_bf16_b_rows{suffix}", x, exact, made, biased(ns, rng))


@pytest.mark.parametrize("suffix", ["", "_batch", "_tall"])
def test_what_a_product_becomes(gpu_library: "GpuLibrary", suffix: str) -> None:
    rng = np.random.default_rng(13)
    rows, k, n = 35, 520, 90
    w, values = bf16_matrix(n, k, rng)
    x, exact = inputs(rng, rows, k)
    (bias,) = biased([n], rng)
    y = rng.standard_normal((rows, n)).astype(np.float32)
    expected = exact @ values.T + bias + y
    sizes = {"rows": rows, "k": k, "n": n}
    gpu_library.call(f"linear_q_bf16_b_add{suffix}", xq=x, w=w, bias=bias, add=y, y=y, **sizes)
    assert_near(y, expected)
    y = poison((rows, n), np.float32)
    gpu_library.call(f"linear_q_bf16_cap{suffix}", xq=x, w=w, y=y, **sizes, cap=0.5)
    assert_near(y, 0.5 * np.tanh(exact @ values.T / 0.5))


@pytest.mark.parametrize("suffix", ["_batch", "_tall"])
def test_a_row_hangs_on_no_other(gpu_library: "GpuLibrary", suffix: str) -> None:
    """Rows that hold NaN leave the others' bits as they are."""
    rng = np.random.default_rng(17)
    rows, k, n = 40, 320, 100
    w, _ = bf16_matrix(n, k, rng)
    x, _ = inputs(rng, rows, k)
    spoiled = x.copy()
    spoiled[::3] = ml_dtypes.bfloat16(np.nan)
    y = [poison((rows, n), np.float32) for _ in range(2)]
    for each, out in zip((x, spoiled), y, strict=True):
        gpu_library.call(f"linear_q_bf16{suffix}", xq=each, w=w, y=out, rows=rows, k=k, n=n)
    clean = np.arange(rows) % 3 != 0
    assert y[0][clean].tobytes() == y[1][clean].tobytes()
    assert np.isnan(y[1][~clean]).all()
