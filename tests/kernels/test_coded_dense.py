"""What a GPU writes as bfloat16, codes and rows of tables, is what it writes as floats, rounded."""

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from kernels.harness import poison, windowed
from kernels.reference import Array

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

pytestmark = pytest.mark.gpu

BF16 = ml_dtypes.bfloat16
ROWS = 3


def floats(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def assert_codes(library: "GpuLibrary", family: str, args: dict, width: int) -> None:
    """The codes of each form are its floats to bfloat16, and the floats are the plain form's."""
    made = []
    for form, outs in (("", "y"), ("_q", "yq"), ("_fq", "y yq")):
        out = {
            name: poison((ROWS, width), np.float32 if name == "y" else BF16)
            for name in outs.split()
        }
        library.call(f"{family}{form}", **args, **out)
        made.append(out)
    plain, codes, both = made
    np.testing.assert_array_equal(both["y"], plain["y"])
    for given in (codes, both):
        np.testing.assert_array_equal(given["yq"], plain["y"].astype(BF16))


@pytest.mark.parametrize(
    ("width", "unit"), [(2560, 2560), (96, 96), (77, 77), (1024, 128), (5120, 5120)]
)
def test_norms_code_what_they_make(half_library: "GpuLibrary", width: int, unit: int) -> None:
    x, d, w, dw = floats(ROWS, width), floats(width, ROWS).T.copy(), floats(unit), floats(width)
    sizes = {"rows": ROWS, "width": width, "unit": unit, "eps": 1e-6, "plus_one": 1}
    total = poison(x.shape, np.float32)
    assert_codes(half_library, "norm", {"x": x, "w": w, **sizes}, width)
    assert_codes(half_library, "add_norm", {"x": x, "d": d, "w": w, "sum": total, **sizes}, width)
    np.testing.assert_array_equal(total, x + d)
    pre = {"dw": dw, "pre_eps": 1e-5, "pre_plus_one": 0}
    added = {"x": x, "d": d, "w": w, "sum": total, **sizes, **pre}
    assert_codes(half_library, "add_norm_pre", added, width)
    gate = windowed(np.random.default_rng(5), ROWS, units=1, width=width, pitch=width + 8, offset=4)
    assert_codes(half_library, "gated_norm", {"x": x, "w": w, **gate.args("z"), **sizes}, width)


@pytest.mark.parametrize("width", [256, 36, 33])
def test_rows_are_set_into_tables_of_bfloat16(half_library: "GpuLibrary", width: int) -> None:
    x = floats(ROWS, width)
    slot = np.array([4, -1, 0], np.int32)
    for entry, pitch, column in (("set_rows", width, 0), ("set_cols", width + 12, 4)):
        table = np.full((6, pitch), 9, BF16)
        where = {} if entry == "set_rows" else {"pitch": pitch, "column": column}
        half_library.call(entry, x=x, slot=slot, table=table, rows=ROWS, width=width, **where)
        expected = np.full((6, pitch), 9, BF16)
        expected[[4, 0], column : column + width] = x[[0, 2]].astype(BF16)
        np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("kind", [0, 1])
def test_rotated_rows_are_set_into_tables_of_bfloat16(
    half_library: "GpuLibrary", kind: int
) -> None:
    heads, head_dim, rot = 2, 64, 32
    x, w, cos, sin = (
        floats(ROWS, heads * head_dim),
        floats(head_dim),
        floats(9, 16),
        floats(16, 9).T.copy(),
    )
    position, slot = np.array([8, -1, 2], np.int32), np.array([5, -1, 3], np.int32)
    args = {
        "x": x, "w": w, "position": position, "cos": cos, "sin": sin, "rows": ROWS, "heads": heads,
        "head_dim": head_dim, "rot": rot, "kind": kind, "eps": 1e-6, "plus_one": 0,
    }  # fmt: skip
    y = poison(x.shape, np.float32)
    half_library.call("rope_n", **args, y=y)
    table = np.full((6, heads * head_dim), 9, BF16)
    half_library.call("rope_n_rows", **args, table=table, slot=slot)
    expected = np.full(table.shape, 9, BF16)
    expected[[5, 3]] = y[[0, 2]].astype(BF16)
    np.testing.assert_array_equal(table, expected)


def test_gathered_columns_are_those_of_the_table(half_library: "GpuLibrary") -> None:
    page, width, column = 4, 24, 8
    table, pages = floats(20, 40).astype(BF16), np.array([3, 0, 4], np.int32)
    slot = (pages[:, None] * page + np.arange(page)).reshape(-1)[:ROWS]
    args = {
        "table": table, "pages": pages, "rows": ROWS, "width": width, "page": page, "pitch": 40,
        "column": column,
    }  # fmt: skip
    assert_codes(half_library, "gather", args, width)
    y = poison((ROWS, width), np.float32)
    half_library.call("gather", **args, y=y)
    np.testing.assert_array_equal(y, table[slot, column : column + width].astype(np.float32))
