"""linear, parts2 to parts4: against float64, and one accumulation order whatever the form."""

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bedstone.spec.dtype import FORMATS, FormatName
from kernels.harness import Library, poison
from kernels.reference import Array, quantize, unquantize, weights

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

QUANTIZED = tuple(name for name, fmt in FORMATS.items() if fmt.quantized)
K: dict[FormatName, int] = {
    "f32": 77, "f16": 53, "bf16": 96, "q8_0": 160, "q4_0": 96, "q4_1": 608, "q4_k": 512,
    "q6_k": 768,
}  # fmt: skip
FORM_CASES = [(name, False) for name in FORMATS] + [(name, True) for name in QUANTIZED]

SOME_FORM_CASES = [case for case in FORM_CASES if case[0] in ("f32", "q4_1", "q6_k")]
"""One format of each kind of block: for entries whose sums are `linear`'s own, of one source."""

forms = pytest.mark.parametrize(("name", "codes"), FORM_CASES)


def activations(x: Array, *, codes: bool) -> tuple[dict[str, Array], Array]:
    """The arguments that carry `x`, and the values they stand for."""
    if not codes:
        return {"x": x}, x.astype(np.float64)
    xq, xs, xz = quantize(x)
    return {"xq": xq, "xs": xs, "xz": xz}, unquantize(xq, xs)


def rows_of(args: dict[str, Array], rows: slice) -> dict[str, Array]:
    return {name: np.ascontiguousarray(value[rows]) for name, value in args.items()}


def entry(family: str, name: FormatName, *, codes: bool, forms: str = "") -> str:
    return f"{family}{'_q' if codes else ''}_{name}{forms}"


def linear(library: Library, name: FormatName, args: dict[str, Array], w: Array, k: int) -> Array:
    rows, n = len(next(iter(args.values()))), len(w)
    y = poison((rows, n), np.float32)
    library.call(entry("linear", name, codes="xq" in args), **args, w=w, y=y, rows=rows, k=k, n=n)
    return y


def assert_near(y: Array, expected: Array, tolerance: float = 3e-6) -> None:
    assert np.abs(y - expected).max() <= tolerance * np.abs(expected).max()


@forms
@pytest.mark.parametrize("n", [5, 70])
def test_products_are_near_float64_and_do_not_depend_on_the_row_count(
    library: Library, name: FormatName, n: int, *, codes: bool
) -> None:
    rng = np.random.default_rng([n, len(name)])
    w, values = weights(name, n, K[name], rng)
    args, x = activations(rng.standard_normal((131, K[name])).astype(np.float32), codes=codes)
    full = linear(library, name, args, w, K[name])
    assert_near(full, x @ values.T)
    for rows in (1, 2, 3, 4, 5, 8, 9, 12, 20):
        part = linear(library, name, rows_of(args, slice(rows)), w, K[name])
        np.testing.assert_array_equal(part, full[:rows])
    last = linear(library, name, rows_of(args, slice(130, 131)), w, K[name])
    np.testing.assert_array_equal(last, full[130:])


@forms
@pytest.mark.parametrize("rows", [1, 6])
def test_parts_bias_and_table_change_no_bit(
    library: Library, name: FormatName, rows: int, *, codes: bool
) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, sizes = K[name], (40, 9, 75, 33)
    mats = [weights(name, n, k, rng)[0] for n in sizes]
    bias = [rng.standard_normal(n).astype(np.float32) for n in sizes]
    args, _ = activations(rng.standard_normal((rows, k)).astype(np.float32), codes=codes)
    plain = [linear(library, name, args, w, k) for w in mats]
    slot = rng.permutation(11)[:rows].astype(np.int32)
    for count in (1, 2, 3, 4):
        for biased in (False, True)[: 1 if count == 4 else 2]:
            wanted = [y + b if biased else y for y, b in zip(plain, bias, strict=True)][:count]
            numbers = [""] if count == 1 else [str(i) for i in range(count)]
            call = args | {"rows": rows, "k": k}
            for i, number in enumerate(numbers):
                call |= {f"w{number}": mats[i], f"n{number}": sizes[i]}
                call |= {f"bias{number}": bias[i]} if biased else {}
            outs = {f"y{i}": poison((rows, sizes[j]), np.float32) for j, i in enumerate(numbers)}
            table = np.full((11, sizes[count - 1]), 7, np.float32)
            family, form = ("linear", f"parts{count}")[count > 1], "_b" if biased else ""
            library.call(entry(family, name, codes=codes, forms=form), **call, **outs)
            for y, expected in zip(outs.values(), wanted, strict=True):
                np.testing.assert_array_equal(y, expected)
            if count == 4:
                continue
            kept = dict(list(outs.items())[:-1])
            library.call(
                entry(family, name, codes=codes, forms=f"{form}_rows"),
                **call,
                **kept,
                table=table,
                slot=slot,
            )
            np.testing.assert_array_equal(table[slot], wanted[-1])
            np.testing.assert_array_equal(np.delete(table, slot, axis=0), 7)


@pytest.mark.parametrize(("name", "codes"), SOME_FORM_CASES)
@pytest.mark.parametrize("rows", [1, 6])
def test_what_is_added_and_a_cap_change_no_bit(
    library: Library, name: FormatName, rows: int, *, codes: bool
) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, n = K[name], 75
    w, _ = weights(name, n, k, rng)
    args, _ = activations(rng.standard_normal((rows, k)).astype(np.float32), codes=codes)
    plain = linear(library, name, args, w, k)
    bias = rng.standard_normal(n).astype(np.float32)
    addend = rng.standard_normal((rows, n)).astype(np.float32)
    capped = poison((rows, n), np.float32)
    library.call("softcap", x=plain, y=capped, count=plain.size, cap=1.5)
    call = args | {"w": w, "rows": rows, "k": k, "n": n}
    for forms, more, wanted in (
        ("_add", {"add": addend}, plain + addend),
        ("_b_add", {"add": addend, "bias": bias}, plain + bias + addend),
        ("_cap", {"cap": 1.5}, capped),
    ):
        y = poison((rows, n), np.float32)
        library.call(entry("linear", name, codes=codes, forms=forms), **call, **more, y=y)
        np.testing.assert_array_equal(y, wanted)
    over = addend.copy()
    library.call(entry("linear", name, codes=codes, forms="_add"), **call, add=over, y=over)
    np.testing.assert_array_equal(over, plain + addend)


def test_a_negative_slot_writes_nothing(library: Library) -> None:
    x, w = np.ones((2, 8), np.float32), np.ones((3, 8), np.float32)
    table = np.zeros((2, 3), np.float32)
    slot = np.array([-1, 1], np.int32)
    library.call("linear_f32_rows", x=x, w=w, table=table, slot=slot, rows=2, k=8, n=3)
    np.testing.assert_array_equal(table, [[0, 0, 0], [8, 8, 8]])


@pytest.mark.parametrize(("k", "codes"), [(4096, False), (12544, False), (12544, True)])
def test_a_row_longer_than_a_panel_gives_the_same_bits(
    library: Library, k: int, *, codes: bool
) -> None:
    rng = np.random.default_rng(k)
    w, values = weights("q4_k", 19, k, rng)
    args, x = activations(rng.standard_normal((5, k)).astype(np.float32), codes=codes)
    many = linear(library, "q4_k", args, w, k)
    assert_near(many, x @ values.T)
    one = linear(library, "q4_k", rows_of(args, slice(2, 3)), w, k)
    np.testing.assert_array_equal(one, many[2:3])


@pytest.mark.parametrize(("name", "k"), [("bf16", 512), ("f16", 4096), ("f32", 4096)])
def test_c29_sums_are_float32(library: Library, name: FormatName, k: int) -> None:
    w, values = weights(name, 1, k, np.random.default_rng(0))
    y = linear(library, name, {"x": np.ones((1, k), np.float32)}, np.ones_like(w), k)
    assert values.shape == (1, k)
    assert y[0, 0] == k


@pytest.mark.parametrize("name", QUANTIZED)
def test_extreme_codes_do_not_overflow(library: Library, name: FormatName) -> None:
    k = K[name]
    w = np.full((3, k // FORMATS[name].block * FORMATS[name].block_bytes), 0xFF, np.uint8)
    blocks = w.reshape(3, -1, FORMATS[name].block_bytes)
    at = {"q8_0": (0,), "q4_0": (0,), "q4_1": (0, 2), "q4_k": (0, 2), "q6_k": (208,)}[name]
    for offset in at:
        blocks[..., offset : offset + 2] = np.array([1.0], np.float16).view(np.uint8)
    if name == "q8_0":
        blocks[..., 2:] = 0x80
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    values = dequantize(w, GGMLQuantizationType[name.upper()]).astype(np.float64)
    for sign in (1, -1):
        args, x = activations(np.full((5, k), sign, np.float32), codes=True)
        expected = x @ values.T
        for rows in (1, 5):
            y = linear(library, name, rows_of(args, slice(rows)), w, k)
            np.testing.assert_allclose(y, expected[:rows], rtol=2e-6)


@pytest.mark.parametrize("name", ["q4_1", "q6_k"])
def test_a_row_that_is_not_finite_stays_so_and_spoils_no_other(
    library: Library, name: FormatName
) -> None:
    rng = np.random.default_rng(3)
    w, _ = weights(name, 16, K[name], rng)
    x = rng.standard_normal((3, K[name])).astype(np.float32)
    x[1, 40] = np.inf
    q = {
        "yq": poison(x.shape, np.int8),
        "ys": poison((3, K[name] // 32), np.float32),
        "yz": poison((3, K[name] // 32), np.int32),
    }
    library.call("quantize", x=x, **q, rows=3, width=K[name])
    args = {"xq": q["yq"], "xs": q["ys"], "xz": q["yz"]}
    y = linear(library, name, args, w, K[name])
    assert np.isnan(y[1]).all()
    assert np.isfinite(y[[0, 2]]).all()


@pytest.mark.parametrize(("name", "k"), [("q8_0", 96), ("q4_1", 1120), ("q6_k", 1280)])
@pytest.mark.parametrize("n", [64, 96])
def test_neighbours_that_share_many_rows_change_no_bit(
    library: Library, name: FormatName, k: int, n: int
) -> None:
    """Two blocks halve 256 rows and more between them; codes go 1024 values of k at a time."""
    rng = np.random.default_rng([n, k])
    w, _ = weights(name, n, k, rng)
    args, _ = activations(rng.standard_normal((300, k)).astype(np.float32), codes=True)
    full = linear(library, name, args, w, k)
    for rows in (slice(0, 5), slice(100, 228), slice(158, 164), slice(290, 300)):
        np.testing.assert_array_equal(linear(library, name, rows_of(args, rows), w, k), full[rows])


LONG: list[tuple[FormatName, int]] = [
    ("bf16", 9728), ("bf16", 2560), ("f16", 1544), ("f32", 3072), ("q8_0", 4096), ("q4_0", 14592),
    ("q4_1", 9728), ("q4_k", 2560), ("q4_k", 5120), ("q4_k", 12288), ("q6_k", 2560),
]  # fmt: skip
"""Rows that a few threads share, in parts that differ, and one longer than is coded at once."""


@pytest.mark.parametrize(("name", "k"), LONG)
def test_long_rows(library: Library, name: FormatName, k: int) -> None:
    rng = np.random.default_rng([k, len(name)])
    w, values = weights(name, 300, k, rng)
    x = rng.standard_normal((9, k)).astype(np.float32)
    full = linear(library, name, {"x": x}, w, k)
    assert_near(full, x.astype(np.float64) @ values.T, 1e-5)
    for rows in (1, 3):
        part = linear(library, name, {"x": np.ascontiguousarray(x[:rows])}, w, k)
        np.testing.assert_array_equal(part, full[:rows])


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "k"), [case for case in LONG if case[0] in QUANTIZED])
def test_activations_in_eight_bits(half_library: "GpuLibrary", name: FormatName, k: int) -> None:
    rng = np.random.default_rng([k, len(name)])
    w, values = weights(name, 300, k, rng)
    x = rng.standard_normal((3, k)).astype(np.float32)
    x[1] = 0
    full = linear(half_library, name, {"x": x}, w, k)
    coded = unquantize(*quantize(x)[:2])
    assert_near(full, coded @ values.T, 1e-3)
    part = linear(half_library, name, {"x": np.ascontiguousarray(x[:1])}, w, k)
    np.testing.assert_array_equal(part, full[:1])
