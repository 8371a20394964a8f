"""Reported cases about caches: where a sequence ends, pools past 2^31, one order of sums."""

import ctypes
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bedstone.library.catalog import cpu_kernels
from bedstone.spec.manifest import ScalarParam
from kernels.harness import (
    DTYPES,
    Dim3,
    Library,
    extent,
    poison,
    poisoned_scratch,
    shared_bytes,
)
from kernels.reference import Array
from kernels.test_attention import Case, problem, run
from kernels.test_linear import linear

PAGE, WIDTH = 16, 1024
BEYOND = 2**31 // (PAGE * WIDTH)
"""The first page whose values lie 2^31 and more from the pool's first."""


@pytest.mark.parametrize("length", [15, 16, 17, 32])
def test_d01_a_page_is_read_as_far_as_its_sequence_goes(library: Library, length: int) -> None:
    """The page after the last and what is left of the last hold NaN."""
    paged = problem(Case(4, 2, 8, 8, (length - 1,), page=PAGE))
    pages = paged.args["pages"][0]
    slots = np.concatenate([np.arange(PAGE * page, PAGE * page + PAGE) for page in pages])
    used, unused = slots[:length], slots[length:]
    assert len(unused) >= PAGE
    assert np.isnan(paged.args["k"][unused]).all()
    assert np.isnan(paged.args["v"][unused]).all()
    y = run(library, paged.args)
    assert np.isfinite(y).all()
    whole = {name: np.ascontiguousarray(paged.args[name][used]) for name in "kv"}
    one_page = {"pages": np.zeros((1, 1), np.int32), "page": length, "pages_width": 1}
    unpaged = run(library, paged.args | whole | one_page)
    np.testing.assert_allclose(y, unpaged, rtol=1e-6, atol=1e-7)


def call_in_place(library: Library, entry: str, **args: Array | float) -> None:
    """Run an entry on memory where it lies: there is too much of it to copy between guards."""
    kernel = cpu_kernels().kernels[entry]
    library.load(frozenset({kernel.module}))
    words = np.zeros(len(kernel.params), np.uint64)
    for i, param in enumerate(kernel.params):
        value = args[param.name]
        if isinstance(param.type, ScalarParam):
            words[i : i + 1].view(DTYPES[param.type.type])[0] = value
        else:
            words[i] = value.ctypes.data
    packed = (ctypes.c_uint64 * len(words))(*words.tolist())
    grid = tuple(extent(e, args) for e in kernel.grid)
    _, start = poisoned_scratch(shared_bytes(kernel.shared, args))
    for block in product(*(range(n) for n in grid)):
        function = library.loaded[kernel.module][entry]
        function(
            packed, ctypes.byref(Dim3(*block)), ctypes.byref(Dim3(*grid)), ctypes.c_void_p(start)
        )


def pool(path: Path, pages: int) -> Array:
    """So many pages of float32 rows, in a file that holds what is written of them alone."""
    return np.memmap(path, np.float32, "w+", shape=(pages * PAGE, WIDTH))


def test_d12_a_pool_may_hold_more_than_2_31_values(
    libraries: dict[str, Library], tmp_path: Path
) -> None:
    """Rows written behind and read back are what they are at the front of a small pool."""
    library = next(iter(libraries.values()))
    rng = np.random.default_rng(12)
    x = rng.standard_normal((20, WIDTH)).astype(np.float32)
    at = np.arange(20, dtype=np.int32)
    pages = {
        "far": np.array([[BEYOND + 1, BEYOND]], np.int32),
        "near": np.array([[0, 1]], np.int32),
    }
    tables = {"far": pool(tmp_path / "far", BEYOND + 2), "near": pool(tmp_path / "near", 2)}
    sizes = {
        "rows": 1, "heads": 8, "groups": 8, "dk": 128, "dv": 128, "page": PAGE, "pages_width": 2,
        "stride": 0, "scale": 0.1, "window": 0, "softcap": 0.0,
    }  # fmt: skip
    found = {}
    for where, table in tables.items():
        slot = (pages[where][0, at // PAGE] * PAGE + at % PAGE).astype(np.int32)
        call_in_place(library, "set_rows", x=x, slot=slot, table=table, rows=20, width=WIDTH)
        np.testing.assert_array_equal(table[slot], x)
        q, y = x[:1, :].copy(), poison((1, 8, 128), np.float32)
        call_in_place(
            library, "attention", q=q, k=table, v=table, pages=pages[where],
            position=np.array([19], np.int32), y=y, **sizes,
        )  # fmt: skip
        gathered = poison((20, 64), np.float32)
        call_in_place(
            library, "gather", table=table, pages=pages[where], y=gathered, rows=20, width=64,
            page=PAGE, pitch=WIDTH, column=960,
        )  # fmt: skip
        found[where] = y, gathered
    np.testing.assert_array_equal(found["far"][1], x[:, 960:])
    for far, close in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(far, close)


@pytest.mark.parametrize("rows", [2, 8, 9, 64])
def test_d10_a_sum_has_one_order_whatever_else_is_summed(library: Library, rows: int) -> None:
    """1 from left to right, 2 in pairs, 0 where the large ones meet last."""
    terms = np.tile(np.array([1e8, 1, -1e8, 1], np.float32), 24)
    alone, together = (
        linear(library, "f32", {"x": np.ones((count, 96), np.float32)}, terms[None], 96)
        for count in (1, rows)
    )
    np.testing.assert_array_equal(together, np.repeat(alone, rows, axis=0))
