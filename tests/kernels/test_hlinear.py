"""Products of each head by its own matrix: bit for bit `linear`, and the transposed in order."""

import numpy as np
import pytest

from bedstone.spec.dtype import FormatName
from kernels.harness import Library, Windowed, poison, windowed
from kernels.reference import Array, weights
from kernels.test_linear import SOME_FORM_CASES, K, activations, entry, rows_of
from kernels.test_mixture import product
from kernels.test_parts import assert_forms

HEADS = 3


def codes_of(part: Windowed) -> dict[str, Array | int]:
    """A part's quantized form: codes, scales and sums at the same places."""
    wide = np.nan_to_num(part.x).astype(np.float32)
    padded = np.concatenate([wide, np.zeros(-len(wide) % 32, np.float32)])
    args, _ = activations(padded.reshape(1, -1), codes=True)
    sizes = {name: value for name, value in part.args("x").items() if name != "x"}
    return {name: value.reshape(-1) for name, value in args.items()} | sizes


@pytest.mark.parametrize(("name", "codes"), SOME_FORM_CASES)
@pytest.mark.parametrize("rows", [1, 9])
def test_each_head_is_a_linear_of_its_own(
    library: Library, name: FormatName, rows: int, *, codes: bool
) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, n = K[name], 64
    w, _ = weights(name, HEADS * n, k, rng)
    pitch, offset = (k + 64, 32) if codes else (k + 5, 2)
    part = windowed(rng, rows, units=HEADS, width=k, pitch=pitch, offset=offset)
    args = codes_of(part) if codes else part.args("x")
    dense, _ = activations(part.dense.reshape(rows * HEADS, k), codes=codes)
    expected = np.empty((rows, HEADS, n), np.float32)
    for head in range(HEADS):
        own = rows_of(dense, slice(head, None, HEADS))
        matrix = np.ascontiguousarray(w[head * n : (head + 1) * n])
        expected[:, head] = product(library, name, own, matrix, k)
    sizes = {"w": w, "rows": rows, "heads": HEADS, "k": k, "n": n}
    called = entry("hlinear", name, codes=codes)
    assert_forms(library, called, {**args, **sizes}, expected.reshape(rows, -1))


def test_a_head_may_make_any_number_of_values(library: Library) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4, HEADS * 20)).astype(np.float32)
    w, values = weights("f32", HEADS * 37, 20, rng)
    y = poison((4, HEADS * 37), np.float32)
    part = {"x": x, "x_row": 60, "x_unit": 60, "x_width": 60}
    library.call("hlinear_f32", **part, w=w, y=y, rows=4, heads=HEADS, k=20, n=37)
    heads, own = x.reshape(4, HEADS, 20), values.reshape(HEADS, 37, 20)
    expected = np.einsum("rhk,hnk->rhn", heads, own).reshape(4, -1)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["f32", "bf16", "q4_1", "q6_k"])
@pytest.mark.parametrize("rows", [1, 67])
def test_the_transposed_sums_in_order(library: Library, name: FormatName, rows: int) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, n = 13, K[name]
    w, values = weights(name, HEADS * k, n, rng)
    part = windowed(rng, rows, units=HEADS, width=k, pitch=k + 6, offset=6)
    y = poison((rows, HEADS * n), np.float32)
    library.call(f"hlinear_t_{name}", **part.args("x"), w=w, y=y, rows=rows, heads=HEADS, k=k, n=n)
    heads, own = part.dense.reshape(rows, HEADS, k), values.reshape(HEADS, k, n)
    expected = np.einsum("rhk,hkn->rhn", heads.astype(np.float64), own).reshape(rows, -1)
    assert np.abs(y - expected).max() <= 3e-6 * np.abs(expected).max()
    alone = poison((1, HEADS * n), np.float32)
    last = part.args("x") | {"x": part.x[(rows - 1) * part.row :].copy()}
    library.call(f"hlinear_t_{name}", **last, w=w, y=alone, rows=1, heads=HEADS, k=k, n=n)
    np.testing.assert_array_equal(alone[0], y[-1])
