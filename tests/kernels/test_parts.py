"""Parts of rows: read in place they give what a dense copy gives, bit for bit."""

import numpy as np
import pytest

from kernels.harness import Library, Windowed, into, poison, windowed
from kernels.reference import softplus
from kernels.test_glu import quantized_outputs

SHAPES = [(1, 48, 64, 16), (3, 24, 40, 5), (5, 7, 9, 2), (2, 64, 64, 0)]
"""Units, their width, their pitch and offset in the wider row."""

shapes = pytest.mark.parametrize("shape", SHAPES)


def part(shape: tuple[int, int, int, int], rows: int = 3) -> Windowed:
    units, width, pitch, offset = shape
    rng = np.random.default_rng(shape)
    return windowed(rng, rows, units=units, width=width, pitch=pitch, offset=offset)


@shapes
def test_take_part_is_the_dense_copy(library: Library, shape: tuple) -> None:
    p = part(shape)
    y = poison(p.dense.shape, np.float32)
    library.call("take_part", **p.args("x"), y=y, rows=3, width=p.dense.shape[1])
    np.testing.assert_array_equal(y, p.dense)


@shapes
@pytest.mark.parametrize("function", ["silu", "sigmoid", "softplus", "gelu_tanh"])
def test_functions_of_a_part(library: Library, function: str, shape: tuple) -> None:
    p = part(shape)
    y, dense = poison(p.dense.shape, np.float32), poison(p.dense.shape, np.float32)
    library.call(f"{function}_p", **p.args("x"), y=y, rows=3, width=p.dense.shape[1])
    library.call(function, x=p.dense, y=dense, count=dense.size)
    np.testing.assert_array_equal(y, dense)


@pytest.mark.parametrize(
    "shape", [(1, 64, 96, 32), (4, 32, 64, 32), (4, 24, 40, 5), (2, 80, 90, 1)]
)
def test_quantize_of_a_part(library: Library, shape: tuple) -> None:
    p = part(shape)
    width = p.dense.shape[1]
    made, dense = quantized_outputs(3, width), quantized_outputs(3, width)
    library.call("quantize_p", **p.args("x"), **made, rows=3, width=width)
    library.call("quantize", x=p.dense, **dense, rows=3, width=width)
    for name, value in dense.items():
        np.testing.assert_array_equal(made[name], value)


@pytest.mark.parametrize("shared", [False, True])
def test_concat_lays_units_side_by_side(library: Library, *, shared: bool) -> None:
    rng = np.random.default_rng(6)
    a = windowed(rng, 2, units=3, width=10, pitch=16, offset=4)
    b = windowed(rng, 2, units=1 if shared else 3, width=6, pitch=11, offset=3)
    args = {**a.args("a"), **b.args("b")}
    if shared:
        args["b_unit"] = 0
    y = poison((2, 48), np.float32)
    library.call("concat", **args, y=y, rows=2, units=3, wa=10, wb=6)
    right = np.broadcast_to(b.dense.reshape(2, -1, 6), (2, 3, 6))
    expected = np.concatenate([a.dense.reshape(2, 3, 10), right], axis=2)
    np.testing.assert_array_equal(y, expected.reshape(2, -1))


@pytest.mark.parametrize("width", [1, 37])
def test_rows_are_set_into_columns(library: Library, width: int) -> None:
    x = np.random.default_rng(width).standard_normal((3, width)).astype(np.float32)
    args = {"x": x, "rows": 3, "width": width}
    np.testing.assert_array_equal(into(library, "set_cols", "y", x.shape, args), x)


def norm_args(p: Windowed, unit: int) -> dict:
    w = np.random.default_rng(unit).standard_normal(unit).astype(np.float32)
    width = p.dense.shape[1]
    return {"w": w, "rows": 3, "width": width, "unit": unit, "eps": 1e-6, "plus_one": 1}


@pytest.mark.parametrize(
    ("shape", "unit"), [((4, 24, 40, 5), 24), ((4, 24, 40, 5), 12), ((4, 24, 40, 5), 96)]
)
def test_norms_of_parts_and_into_columns_are_the_plain_norm(
    library: Library, shape: tuple, unit: int
) -> None:
    p = part(shape)
    args = norm_args(p, unit)
    plain = poison(p.dense.shape, np.float32)
    library.call("norm", x=p.dense, y=plain, **args)
    for entry in ("norm_p", "norm_cols", "norm_p_cols"):
        x = p.args("x") if "_p" in entry else {"x": p.dense}
        made = into(library, entry, "y", plain.shape, {**x, **args})
        np.testing.assert_array_equal(made, plain)


@pytest.mark.parametrize(("width", "unit"), [(96, 96), (96, 24), (35, 7)])
def test_l2norm_is_near_float64(library: Library, width: int, unit: int) -> None:
    x = np.random.default_rng(width).standard_normal((3, width)).astype(np.float32)
    y = poison(x.shape, np.float32)
    library.call("l2norm", x=x, y=y, rows=3, width=width, unit=unit, eps=1e-6)
    units = x.astype(np.float64).reshape(3, -1, unit)
    expected = units / np.sqrt((units**2).sum(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(y, expected.reshape(x.shape), rtol=2e-6)


def assert_forms(library: Library, entry: str, args: dict, y: np.ndarray) -> None:
    """The entry in each of its output forms makes `y`, or what `quantize` makes of it."""
    rows, width = y.shape
    apart = quantized_outputs(rows, width)
    library.call("quantize", x=y, **apart, rows=rows, width=width)
    for form in ("", "_q", "_fq"):
        out = {} if form == "" else quantized_outputs(rows, width)
        out |= {} if form == "_q" else {"y": poison(y.shape, np.float32)}
        library.call(entry + form, **args, **out)
        for name, made in out.items():
            np.testing.assert_array_equal(made, y if name == "y" else apart[name])


@pytest.mark.parametrize("unit", [24, 96])
@pytest.mark.parametrize("shape", [(4, 24, 40, 5), (2, 48, 48, 0)])
def test_gated_norm_is_its_parts(library: Library, shape: tuple, unit: int) -> None:
    z = part(shape)
    x = np.random.default_rng(unit).standard_normal(z.dense.shape).astype(np.float32)
    args = norm_args(z, unit)
    n, gate, y = (poison(x.shape, np.float32) for _ in range(3))
    library.call("norm", x=x, y=n, **args)
    library.call("silu", x=z.dense, y=gate, count=gate.size)
    library.call("mul", a=n, b=gate, y=y, count=y.size)
    assert_forms(library, "gated_norm", {"x": x, **z.args("z"), **args}, y)


def test_add_norm_pre_is_its_parts(library: Library) -> None:
    rng = np.random.default_rng(8)
    x, d = rng.standard_normal((2, 3, 96)).astype(np.float32)
    w, dw = rng.standard_normal((2, 96)).astype(np.float32)
    sizes = {"rows": 3, "width": 96, "unit": 96, "eps": 1e-6, "plus_one": 1}
    normed, total, y = (poison(x.shape, np.float32) for _ in range(3))
    library.call("norm", x=d, w=dw, y=normed, **sizes | {"eps": 1e-5, "plus_one": 0})
    library.call("add", a=x, b=normed, y=total, count=x.size)
    library.call("norm", x=total, w=w, y=y, **sizes)
    made = poison(x.shape, np.float32)
    args = {"x": x, "d": d, "dw": dw, "w": w, "sum": made, "pre_eps": 1e-5, "pre_plus_one": 0}
    assert_forms(library, "add_norm_pre", {**args, **sizes}, y)
    np.testing.assert_array_equal(made, total)


def test_softplus_keeps_small_values(library: Library) -> None:
    x = np.linspace(-60, -20, 333).astype(np.float32)
    y = poison(x.shape, np.float32)
    library.call("softplus", x=x, y=y, count=x.size)
    np.testing.assert_allclose(y, softplus(x.astype(np.float64)), rtol=1e-6)
