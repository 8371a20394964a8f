"""Activations that may be rounded to bfloat16, as a set does that multiplies pairs of it faster."""

import ml_dtypes
import numpy as np
import pytest

from kernels.harness import Library, poison
from kernels.reference import Array, weights
from kernels.test_attention import PIECES, Case, problem
from kernels.test_linear import assert_near

ROUNDS = frozenset({"cpu-x86-64-zen4"})


@pytest.fixture(autouse=True)
def _on_a_cpu(library: Library) -> None:
    if not isinstance(library, Library):
        pytest.skip("a GPU's activations are coded instead")


def product(library: Library, entry: str, x: Array, w: Array) -> Array:
    y = poison((len(x), len(w)), np.float32)
    library.call(entry, x=x, w=w, y=y, rows=len(x), k=x.shape[1], n=len(w))
    return y


def drawn(rows: int, n: int, k: int) -> tuple[Array, Array, Array]:
    """Activations, weights as they are held, and what those stand for."""
    rng = np.random.default_rng([rows, n, k])
    held, values = weights("bf16", n, k, rng)
    return rng.standard_normal((rows, k)).astype(np.float32), held, values


@pytest.mark.parametrize("k", [1, 31, 33, 96, 1536, 1601])
def test_rounded_products_are_near_float64_and_do_not_depend_on_the_row_count(
    library: Library, k: int
) -> None:
    x, w, values = drawn(131, 70, k)
    full = product(library, "linear_r_bf16", x, w)
    if library.hardware in ROUNDS:
        assert_near(full, x.astype(ml_dtypes.bfloat16).astype(np.float64) @ values.T)
    else:
        np.testing.assert_array_equal(full, product(library, "linear_bf16", x, w))
    for rows in (1, 3, 4, 9):
        np.testing.assert_array_equal(product(library, "linear_r_bf16", x[:rows], w), full[:rows])
    np.testing.assert_array_equal(product(library, "linear_r_bf16", x[130:], w), full[130:])


def test_a_value_that_is_not_finite_stays_so(library: Library) -> None:
    x, w, _ = drawn(5, 32, 64)
    x[1, 3], x[2, 40] = np.nan, np.inf
    for rows in (slice(1, 3), slice(None)):
        y = product(library, "linear_r_bf16", x[rows], w)
        finite = np.isfinite(x[rows]).all(axis=1)
        assert np.isfinite(y[finite]).all()
        assert not np.isfinite(y[~finite]).any()


@pytest.mark.parametrize("rows", [2, 9])
def test_a_gated_unit_rounds_as_its_parts_do(library: Library, rows: int) -> None:
    x, wg, _ = drawn(rows, 64, 96)
    wu = wg[::-1].copy()
    y, z, parts = (poison((rows, 64), np.float32) for _ in range(3))
    sizes = {"rows": rows, "k": 96}
    library.call("glu_r_bf16", x=x, wg=wg, wu=wu, y=y, n=64, act=0, **sizes)
    acted = poison((rows, 64), np.float32)
    library.call("parts2_r_bf16", x=x, w0=wg, w1=wu, y0=z, y1=parts, n0=64, n1=64, **sizes)
    np.testing.assert_array_equal(z, product(library, "linear_r_bf16", x, wg))
    library.call("silu", x=z, y=acted, count=z.size)
    np.testing.assert_array_equal(y, acted * parts)


@pytest.mark.parametrize("rows", [2, 40])
def test_experts_round_as_a_product_of_theirs_does(library: Library, rows: int) -> None:
    x, stack, _ = drawn(rows, 3 * 40, 64)
    ids = np.random.default_rng(rows).integers(0, 3, (rows, 1)).astype(np.int32)
    y = poison((rows, 40), np.float32)
    sizes = {"rows": rows, "chosen": 1, "units": 1, "k": 64, "n": 40}
    library.call("xlinear_r_bf16", x=x, ids=ids, w=stack, y=y, **sizes)
    for expert in range(3):
        took = ids[:, 0] == expert
        alone = product(library, "linear_r_bf16", x, stack[40 * expert : 40 * (expert + 1)])
        np.testing.assert_array_equal(y[took], alone[took])


@pytest.mark.parametrize("n", [64, 96])
@pytest.mark.parametrize("entry", ["linear_bf16", "linear_r_bf16"])
def test_neighbours_that_share_many_rows_change_no_bit(
    library: Library, entry: str, n: int
) -> None:
    x, w, _ = drawn(300, n, 96)
    full = product(library, entry, x, w)
    for rows in (slice(0, 5), slice(100, 228), slice(158, 164), slice(290, 300)):
        np.testing.assert_array_equal(product(library, entry, x[rows], w), full[rows])


ATTENDED = PIECES | {
    "a prompt": Case(6, 2, 64, 64, tuple(range(70))),
    "a later piece of it": Case(9, 3, 64, 64, tuple(range(190, 203))),
    "heads of their own": Case(4, 4, 40, 24, (127, 128, 129, 130)),
    "a window over a prompt": Case(4, 2, 16, 16, tuple(range(120, 140)), window=7),
}


@pytest.mark.parametrize("case", ATTENDED.values(), ids=ATTENDED)
def test_rounded_attention_is_near_float64_and_each_row_stands_alone(
    library: Library, case: Case
) -> None:
    p = problem(case)
    shape = p.expected.shape
    y, other = poison(shape, np.float32), poison(shape, np.float32)
    library.call("attention_r", **p.args, y=y)
    if library.hardware in ROUNDS:
        # of weights, values and scores eight bits are kept
        assert np.linalg.norm(y - p.expected) < 1.5e-2 * np.linalg.norm(p.expected)
        library.call("attention", **p.args, y=other)
        assert not np.array_equal(y, other)
    else:
        library.call("attention", **p.args, y=other)
        np.testing.assert_array_equal(y, other)
    for r in {0, len(y) // 2, len(y) - 1}:
        alone = {name: p.args[name][r : r + 1].copy() for name in ("q", "position")}
        alone |= {"pages": p.args["pages"][r * case.stride :].copy(), "rows": 1}
        for entry in ("attention_r", "attention_r_pieces"):
            one = poison((1, *shape[1:]), np.float32)
            library.call(entry, **p.args | alone, y=one)
            np.testing.assert_array_equal(one[0], y[r])


def test_rounded_attention_over_latents_changes_no_bit(library: Library) -> None:
    case = Case(16, 1, 576, 512, (9, 70, 200), scale=0.04)
    p = problem(case)
    keys = p.args["k"].reshape(-1, 1, case.dk)
    args = p.args | {"v": np.ascontiguousarray(keys[..., : case.dv])}
    plain = poison(p.expected.shape, np.float32)
    library.call("attention_r", **args, y=plain)
    args.pop("v")
    q = args.pop("q")
    split = {"q": q[..., :512].copy(), "qt": q[..., 512:].copy(), "own": 512}
    for entry, queries in (("attention_in_r", {"q": q}), ("attention_in_split_r", split)):
        made = poison(plain.shape, np.float32)
        library.call(entry, **args, **queries, y=made)
        np.testing.assert_array_equal(made, plain)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_rounded_score_that_is_not_finite_stays_so(library: Library, bad: float) -> None:
    p = problem(Case(4, 1, 64, 64, (150,)))
    p.args["k"][p.args["pages"][0, 100 // 16] * 16 + 100 % 16] = bad
    p.args["q"][...] = np.abs(p.args["q"])
    y = poison(p.expected.shape, np.float32)
    library.call("attention_r", **p.args, y=y)
    assert not np.isfinite(y).any()
