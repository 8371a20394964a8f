"""rope and its tables: against float64, every fused form bit for bit its parts."""

from itertools import product

import numpy as np
import pytest

from bedstone.library.dense import MOST_PAIRS
from kernels.harness import Library, into, poison, windowed
from kernels.reference import rope


def table(library: Library, freqs: np.ndarray, capacity: int, factor: float = 1.0) -> tuple:
    half = len(freqs)
    image = np.full(MOST_PAIRS, np.nan, np.float32)
    image[:half] = freqs
    cos, sin = (poison((capacity, half), np.float32) for _ in range(2))
    sizes = {"capacity": capacity, "half": half, "factor": factor}
    library.call("rope_table", freqs=image, cos=cos, sin=sin, **sizes)
    return cos, sin


@pytest.mark.parametrize("half", [1, 10, 64, MOST_PAIRS])
def test_tables_hold_the_nearest_float32(library: Library, half: int) -> None:
    freqs = (10000.0 ** (-np.arange(half) / half)).astype(np.float32)
    cos, sin = table(library, freqs, 131, 1.25)
    angle = np.arange(131)[:, None] * freqs.astype(np.float64)
    for made, expected in ((cos, 1.25 * np.cos(angle)), (sin, 1.25 * np.sin(angle))):
        np.testing.assert_array_equal(made, expected.astype(np.float32))


def test_a_table_keeps_its_digits_at_far_positions(library: Library) -> None:
    freqs = np.array([1.0, 0.7, 0.013, 1e-4], np.float32)
    cos, sin = table(library, freqs, 40000)
    angle = np.arange(40000)[:, None] * freqs.astype(np.float64)
    assert np.abs(cos - np.cos(angle)).max() < 3.1e-8
    assert np.abs(sin - np.sin(angle)).max() < 3.1e-8


@pytest.mark.parametrize(
    ("head_dim", "rot"), [(64, 64), (128, 128), (256, 256), (24, 24), (80, 32), (10, 6)]
)
@pytest.mark.parametrize("kind", [0, 1])
def test_every_form_is_its_parts(library: Library, head_dim: int, rot: int, kind: int) -> None:
    rng = np.random.default_rng([head_dim, kind])
    rows, heads = 3, (3, 2)
    x = [rng.standard_normal((rows, h, head_dim)).astype(np.float32) for h in heads]
    w = [rng.standard_normal(head_dim).astype(np.float32) for _ in heads]
    angle = rng.uniform(0, 6, (9, rot // 2))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    position, slot = np.array([4, 8, 2], np.int32), np.array([5, 0, 3], np.int32)
    where = {"position": position, "cos": cos, "sin": sin}
    sizes = {"rows": rows, "head_dim": head_dim, "rot": rot, "kind": kind}

    plain: dict[str, list[np.ndarray]] = {"": [], "_n": []}
    for form, i in product(plain, range(2)):
        y = poison(x[i].shape, np.float32)
        source = x[i]
        if form:
            source = poison(x[i].shape, np.float32)
            norm = {"rows": rows, "width": heads[i] * head_dim, "unit": head_dim}
            library.call("norm", x=x[i], w=w[i], y=source, **norm, eps=1e-6, plus_one=1)
        library.call("rope", x=source, **where, y=y, heads=heads[i], **sizes)
        expected = rope(source, cos[position].astype(float), sin[position].astype(float), rot, kind)
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)
        plain[form].append(y)

    for form, rows_form in product(plain, ("", "_rows")):
        scalars = sizes | ({"eps": 1e-6, "plus_one": 1} if form else {})
        for i in range(2):
            weight = {"w": w[i]} if form else {}
            made = call(library, f"rope{form}{rows_form}", x[i].shape, slot, "y", {
                "x": x[i], "heads": heads[i], **weight, **where, **scalars,
            })  # fmt: skip
            np.testing.assert_array_equal(made, plain[form][i])
        weights = {"w0": w[0], "w1": w[1]} if form else {}
        first = poison(x[0].shape, np.float32)
        made = call(library, f"rope_parts{form}{rows_form}", x[1].shape, slot, "y1", {
            "x0": x[0], "x1": x[1], "y0": first, "heads0": heads[0], "heads1": heads[1],
            **weights, **where, **scalars,
        })  # fmt: skip
        np.testing.assert_array_equal(first, plain[form][0])
        np.testing.assert_array_equal(made, plain[form][1])


def call(
    library: Library, entry: str, shape: tuple[int, ...], slot: np.ndarray, out: str, args: dict
) -> np.ndarray:
    """Run a form that writes a buffer, or rows `slot` of a table whose other rows must stay."""
    if not entry.endswith("_rows"):
        y = poison(shape, np.float32)
        library.call(entry, **args, **{out: y})
        return y
    rows = np.full((7, *shape[1:]), 9, np.float32)
    library.call(entry, **args, table=rows, slot=slot)
    np.testing.assert_array_equal(np.delete(rows, slot, axis=0), 9)
    return rows[slot]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (0, [-1.98411065, 1.95990067, 2.4623779, 4.01979967]),
        (1, [-1.14263966, 1.9220756, 2.95985067, 4.0297995]),
    ],
)
def test_c09_the_kind_says_which_values_turn_together(
    library: Library, kind: int, expected: list[float]
) -> None:
    angle = np.array([[0, 0], [1, 0.01]])
    y = rotated(library, np.array([[1, 2, 3, 4]], np.float32), angle, kind)
    np.testing.assert_allclose(y[0], expected, rtol=1e-6)


def test_c10_only_the_first_values_turn(library: Library) -> None:
    x = np.arange(1, 9, dtype=np.float32)[None]
    y = rotated(library, x, np.array([[0, 0], [1, 0.01]]), 0)
    expected = [-1.98411065, 1.95990067, 2.4623779, 4.01979967, 5, 6, 7, 8]
    np.testing.assert_allclose(y[0], expected, rtol=1e-6)


def rotated(library: Library, x: np.ndarray, angle: np.ndarray, kind: int) -> np.ndarray:
    y = poison(x.shape, np.float32)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    sizes = {"rows": 1, "heads": 1, "head_dim": x.shape[1], "rot": 4, "kind": kind}
    library.call("rope", x=x, position=np.array([1], np.int32), cos=cos, sin=sin, y=y, **sizes)
    return y


@pytest.mark.parametrize(("head_dim", "rot", "offset"), [(24, 16, 8), (10, 6, 0), (40, 20, 9)])
@pytest.mark.parametrize("kind", [0, 1])
def test_parts_offsets_and_columns_change_no_bit(
    library: Library, head_dim: int, rot: int, offset: int, kind: int
) -> None:
    rng = np.random.default_rng([head_dim, kind])
    rows, heads = 3, (3, 1)
    parts = [
        windowed(rng, rows, units=h, width=head_dim, pitch=2 * head_dim + 5, offset=7)
        for h in heads
    ]
    w = [rng.standard_normal(head_dim).astype(np.float32) for _ in heads]
    angle = rng.uniform(0, 6, (9, rot // 2))
    table = {"cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32)}
    where = {"position": np.array([4, 8, 2], np.int32), **table}
    sizes = {"rows": rows, "head_dim": head_dim, "rot": rot, "kind": kind}
    norm = {"eps": 1e-6, "plus_one": 1}
    plain: dict[tuple[str, int], np.ndarray] = {}
    for form, i in product(("", "_n"), range(2)):
        x = parts[i].dense
        if form:
            x = poison(x.shape, np.float32)
            library.call(
                "norm",
                x=parts[i].dense,
                w=w[i],
                y=x,
                rows=rows,
                width=x.shape[1],
                unit=head_dim,
                **norm,
            )
        turned = np.ascontiguousarray(x.reshape(rows, -1, head_dim)[..., offset : offset + rot])
        y = poison(turned.shape, np.float32)
        alone = {"rows": rows, "head_dim": rot, "rot": rot, "kind": kind, "heads": heads[i]}
        library.call("rope", x=turned, **where, y=y, **alone)
        whole = x.reshape(rows, -1, head_dim).copy()
        whole[..., offset : offset + rot] = y
        plain[form, i] = whole.reshape(rows, -1)

    for form, to in product(("", "_n"), ("", "_rows", "_cols")):
        scalars = sizes | (norm if form else {}) | {"offset": offset}
        for i in range(2):
            weight = {"w": w[i]} if form else {}
            args = {**parts[i].args("x"), "heads": heads[i], **weight, **where, **scalars}
            made = into(library, f"rope{form}_p{to}", "y", plain[form, i].shape, args)
            np.testing.assert_array_equal(made, plain[form, i])
        first = poison(plain[form, 0].shape, np.float32)
        weights = {"w0": w[0], "w1": w[1]} if form else {}
        args = {
            **parts[0].args("x0"), **parts[1].args("x1"), "y0": first, "heads0": heads[0],
            "heads1": heads[1], **weights, **where, **scalars,
        }  # fmt: skip
        made = into(library, f"rope_parts{form}_p{to}", "y1", plain[form, 1].shape, args)
        np.testing.assert_array_equal(first, plain[form, 0])
        np.testing.assert_array_equal(made, plain[form, 1])


@pytest.mark.parametrize("norm", ["", "_n"])
def test_dense_inputs_go_to_columns(library: Library, norm: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 3, 16)).astype(np.float32)
    angle = rng.uniform(0, 6, (5, 8))
    args = {
        "position": np.array([4, 1], np.int32), "cos": np.cos(angle).astype(np.float32),
        "sin": np.sin(angle).astype(np.float32), "rows": 2, "head_dim": 16, "rot": 16, "kind": 0,
        **({"eps": 1e-5, "plus_one": 0} if norm else {}),
    }  # fmt: skip
    w = np.ones(16, np.float32)
    weights = [{}, {}] if not norm else [{"w": w}, {"w0": w, "w1": w}]
    y, first = poison(x.shape, np.float32), poison(x.shape, np.float32)
    library.call(f"rope{norm}", x=x, y=y, heads=3, **weights[0], **args)
    flat = y.reshape(2, -1)
    one = {"x": x, "heads": 3, **weights[0], **args}
    np.testing.assert_array_equal(into(library, f"rope{norm}_cols", "y", flat.shape, one), flat)
    two = {"x0": x, "x1": x, "y0": first, "heads0": 3, "heads1": 3, **weights[1], **args}
    made = into(library, f"rope_parts{norm}_cols", "y1", flat.shape, two)
    np.testing.assert_array_equal(made, flat)
    np.testing.assert_array_equal(first, y)
