"""glu: act(x wg) * (x wu), bit for bit what its parts make, plain and quantized."""

import numpy as np
import pytest

from bedstone.spec.dtype import FormatName
from kernels.harness import Library, poison
from kernels.reference import ACTS, quantize, unquantize, weights
from kernels.test_linear import FORM_CASES, K, activations, entry, linear


def quantized_outputs(rows: int, width: int) -> dict[str, np.ndarray]:
    return {
        "yq": poison((rows, width), np.int8),
        "ys": poison((rows, width // 32), np.float32),
        "yz": poison((rows, width // 32), np.int32),
    }


@pytest.mark.parametrize(("name", "codes"), FORM_CASES)
@pytest.mark.parametrize(("rows", "act"), [(1, 0), (7, 1)])
def test_glu_is_its_parts(
    library: Library, name: FormatName, rows: int, act: int, *, codes: bool
) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, n = K[name], 96
    (wg, gate), (wu, up) = weights(name, n, k, rng), weights(name, n, k, rng)
    scale = np.float32(1 / np.abs(gate).max() / np.sqrt(k))
    args, x = activations(scale * rng.standard_normal((rows, k)).astype(np.float32), codes=codes)
    call = args | {"wg": wg, "wu": wu, "rows": rows, "k": k, "n": n, "act": act}
    y = poison((rows, n), np.float32)
    library.call(entry("glu", name, codes=codes), **call, y=y)
    expected = ACTS[act](x @ gate.T) * (x @ up.T)
    assert np.abs(y - expected).max() <= 4e-6 * np.abs(expected).max()

    g, u = linear(library, name, args, wg, k), linear(library, name, args, wu, k)
    acted, unfused = poison((rows, n), np.float32), poison((rows, n), np.float32)
    library.call(("silu", "gelu_tanh")[act], x=g, y=acted, count=rows * n)
    library.call("mul", a=acted, b=u, y=unfused, count=rows * n)
    np.testing.assert_array_equal(y, unfused)

    q, fq, apart = (quantized_outputs(rows, n) for _ in range(3))
    again = poison((rows, n), np.float32)
    library.call(entry("glu", name, codes=codes, forms="_q"), **call, **q)
    library.call(entry("glu", name, codes=codes, forms="_fq"), **call, **fq, y=again)
    library.call("quantize", x=y, **apart, rows=rows, width=n)
    np.testing.assert_array_equal(again, y)
    for part in apart:
        np.testing.assert_array_equal(q[part], apart[part])
        np.testing.assert_array_equal(fq[part], apart[part])


def test_glu_of_a_width_that_is_no_multiple_of_the_tile(library: Library) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((4, 20)).astype(np.float32)
    (wg, gate), (wu, up) = weights("f32", 37, 20, rng), weights("f32", 37, 20, rng)
    y = poison((4, 37), np.float32)
    library.call("glu_f32", x=x, wg=wg, wu=wu, y=y, rows=4, k=20, n=37, act=0)
    np.testing.assert_allclose(y, ACTS[0](x @ gate.T) * (x @ up.T), rtol=1e-4, atol=1e-5)


def test_quantize_rounds_halves_away_and_leaves_zero_alone(library: Library) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 96)).astype(np.float32)
    x[0, :32] = 0
    x[1, :32] = [127, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.49999997, *[0.0] * 24]
    x[2, 32:64] *= np.float32(1e-38)
    out = quantized_outputs(3, 96)
    library.call("quantize", x=x, **out, rows=3, width=96)
    codes, scales, sums = quantize(x)
    np.testing.assert_array_equal(out["ys"], scales)
    np.testing.assert_array_equal(out["yq"], codes)
    np.testing.assert_array_equal(out["yz"], sums)
    assert out["yq"][1, :8].tolist() == [127, 1, -1, 2, -2, 3, 0, 0]
    assert np.abs(unquantize(codes, scales) - x).max() <= np.abs(x).max() / 127 * 0.501
