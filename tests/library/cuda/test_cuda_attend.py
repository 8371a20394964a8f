"""Which attention a launch gets on a GPU: by its rows, its widths and what its tables hold."""

import pytest

from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.kernel import CacheType

QWEN = {"heads": 32, "groups": 8, "dk": 128, "dv": 128, "stride": 0}


def taken(entry: str, cache: CacheType, **sizes: int) -> str:
    """The suffix of the first variant that suits."""
    rows = cuda_kernels(cache).variants[entry]
    named = (name.removeprefix(entry) for name, suits in rows if suits(QWEN | sizes, cache))
    return next(named, "")


@pytest.mark.parametrize("entry", ["attention", "attention_q", "attention_gate_fq"])
def test_matrix_units_attend_bfloat16_of_their_widths(entry: str) -> None:
    assert taken(entry, "bf16", rows=1) == "_d128_x8"
    assert taken(entry, "bf16", rows=1, dk=64, dv=64) == "_d64_x8"
    assert taken(entry, "bf16", rows=4, stride=1) == "_d128_x4"
    assert taken(entry, "bf16", rows=8, stride=1) == "_d128_x2"
    assert taken(entry, "bf16", rows=64, stride=1) == "_d128"
    assert taken(entry, "bf16", rows=2048) == "_w128"
    assert taken(entry, "bf16", rows=2048, dk=192, dv=128) == ""


def test_many_rows_are_attended_without_warpgroups_where_there_are_none() -> None:
    rows = cuda_kernels("bf16", warpgroups=False).variants["attention"]
    sizes = QWEN | {"rows": 2048}
    assert next(name for name, suits in rows if suits(sizes, "bf16")) == "attention_m128"


def test_float_tables_are_attended_alike_whatever_the_rows() -> None:
    """Blocks that share a row change no bit of it, unlike the matrix units."""
    assert taken("attention", "f32", rows=1) == "_x8"
    assert taken("attention", "f32", rows=2048) == ""


def test_other_families_are_attended_in_float32() -> None:
    assert taken("attention_flat_q", "bf16", rows=1) == "_x8"
    assert taken("attention_in", "bf16", rows=2048, groups=1) == ""


ROTATED = QWEN | {"heads0": 32, "heads1": 8, "head_dim": 128, "rot": 128}


def joined(
    form: str = "", normed: str = "_n", cache: CacheType = "bf16", **sizes: int
) -> str | None:
    """The first kernel that rotates and attends, where one suits."""
    entries = (f"rope_parts{normed}_rows", f"attention{form}")
    rows = cuda_kernels(cache).joins.items()
    found = (n for n, join in rows if tuple(one.entry for one in join.taken) == entries
             and join.suits(ROTATED | sizes, cache))  # fmt: skip
    return next(found, None)


def test_one_kernel_rotates_and_attends_rows_of_a_sequence_each() -> None:
    assert joined(rows=1) == "attention_turned_n_d128_x8"
    narrow = {"dk": 64, "dv": 64, "head_dim": 64}
    assert joined(rows=1, normed="", **narrow) == "attention_turned_d64_x8"
    assert joined("_q", rows=64, stride=1) == "attention_turned_n_q_d128"
    assert joined(rows=4, stride=0) is None
    assert joined(rows=1, dk=192) is None
    assert joined(rows=1, head_dim=64) is None
    assert joined(rows=1, heads0=16) is None
    assert joined(rows=1, heads1=4) is None
    assert joined(cache="f32", rows=1) is None
