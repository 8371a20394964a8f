"""Convolutions and the gated delta rule: against float64, by pieces and in batches bit for bit."""

from itertools import pairwise

import numpy as np
import pytest

from kernels.harness import Library, Windowed, poison, windowed
from kernels.reference import ACTS, Array, sigmoid, softplus

LINES = 5
"""Lines of a state; the null line, line 0, is nobody's."""


def line_table(size: int) -> Array:
    return poison((LINES, size), np.float32)


# --- convolutions -----------------------------------------------------------------------------


def taps(channels: int, count: int) -> Array:
    return np.random.default_rng(count).standard_normal((channels, count)).astype(np.float32)


def conv(
    library: Library, x: Windowed | Array, w: Array, ring: Array, *, line: list[int],
    start: int = 0, act: int = 0, unit: int = 0,
) -> Array:  # fmt: skip
    """Rows of one sequence from position `start` on, or with several lines a row of each."""
    dense = x.dense if isinstance(x, Windowed) else x
    rows, (channels, count) = len(dense), w.shape
    part = {"x": x, "x_row": channels, "x_unit": channels, "x_width": channels}
    y = poison((rows, channels), np.float32)
    position = start + (np.arange(rows) if len(line) == 1 else np.zeros(rows, int))
    library.call(
        "conv", **(x.args("x") if isinstance(x, Windowed) else part), w=w, ring=ring, y=y,
        line=np.array(line, np.int32), position=position.astype(np.int32), rows=rows,
        seqs=len(line), channels=channels, taps=count, act=act, unit=unit, eps=1e-6,
    )  # fmt: skip
    return y


def exact_conv(x: Array, w: Array) -> Array:
    padded = np.concatenate([np.zeros((w.shape[1] - 1, x.shape[1])), x])
    return np.stack([(padded[r : r + w.shape[1]] * w.T).sum(axis=0) for r in range(len(x))])


@pytest.mark.parametrize("channels", [5, 48, 300])
@pytest.mark.parametrize("count", [2, 4, 5])
def test_conv_is_near_float64_whatever_the_line_held(
    library: Library, channels: int, count: int
) -> None:
    x = np.random.default_rng(channels).standard_normal((9, channels)).astype(np.float32)
    w, ring = taps(channels, count), line_table((count - 1) * channels)
    y = conv(library, x, w, ring, line=[2])
    np.testing.assert_allclose(y, exact_conv(x.astype(np.float64), w), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(ring[2].reshape(count - 1, channels), x[10 - count :])
    assert np.isnan(np.delete(ring, 2, axis=0)).all()


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("splits", [(9,), (1,) * 9, (2, 1, 6)])
def test_any_pieces_of_a_sequence_leave_the_same_bits(
    library: Library, count: int, splits: tuple[int, ...]
) -> None:
    x = np.random.default_rng(7).standard_normal((9, 40)).astype(np.float32)
    w, whole, ring = taps(40, count), *(line_table((count - 1) * 40) for _ in range(2))
    expected = conv(library, x, w, whole, line=[1], act=1, unit=8)
    ends = [0, *np.cumsum(splits).tolist()]
    made = [
        conv(library, x[a:b].copy(), w, ring, line=[1], start=a, act=1, unit=8)
        for a, b in pairwise(ends)
    ]
    np.testing.assert_array_equal(np.concatenate(made), expected)
    np.testing.assert_array_equal(ring, whole)


def test_a_batch_is_its_sequences(library: Library) -> None:
    x = np.random.default_rng(3).standard_normal((3, 24)).astype(np.float32)
    w, ring, apart = taps(24, 4), line_table(72), line_table(72)
    ring[4] = apart[4] = 2
    position = np.array([0, 0, 6], np.int32)
    y = poison((3, 24), np.float32)
    part = {"x": x, "x_row": 24, "x_unit": 24, "x_width": 24}
    sizes = {"rows": 3, "seqs": 3, "channels": 24, "taps": 4, "act": 1, "unit": 0, "eps": 0.0}
    lines = np.array([3, 1, 4], np.int32)
    library.call("conv", **part, w=w, ring=ring, y=y, line=lines, position=position, **sizes)
    for i, line in enumerate(lines):
        own = conv(library, x[i : i + 1].copy(), w, apart, line=[line], start=position[i], act=1)
        np.testing.assert_array_equal(y[i], own[0])
    np.testing.assert_array_equal(ring, apart)


@pytest.mark.parametrize(("channels", "unit"), [(12, 6), (512, 128), (256, 256), (24, 0)])
@pytest.mark.parametrize("act", [0, 1, 2])
def test_a_fused_conv_is_its_parts(library: Library, channels: int, unit: int, act: int) -> None:
    rng = np.random.default_rng(channels)
    x = windowed(rng, 4, units=3, width=channels // 3 if channels == 24 else channels, pitch=600,
                 offset=9)  # fmt: skip
    channels = x.dense.shape[1]
    w = taps(channels, 3)
    made = conv(library, x, w, line_table(2 * channels), line=[1], act=act, unit=unit)
    y = conv(library, x.dense, w, line_table(2 * channels), line=[1])
    if act:
        plain, y = y, poison(y.shape, np.float32)
        library.call(("silu", "gelu_tanh")[act - 1], x=plain, y=y, count=y.size)
        np.testing.assert_allclose(y, ACTS[act - 1](plain.astype(np.float64)), rtol=1e-4, atol=1e-6)
    if unit:
        plain, y = y, poison(y.shape, np.float32)
        library.call("l2norm", x=plain, y=y, rows=4, width=channels, unit=unit, eps=1e-6)
    np.testing.assert_array_equal(made, y)


@pytest.mark.parametrize("count", [2, 3])
def test_convs_side_by_side_are_each_alone(library: Library, count: int) -> None:
    rng = np.random.default_rng(count)
    widths, units = (16, 16, 40)[:count], (8, 8, 0)[:count]
    parts = [windowed(rng, 5, units=2, width=n // 2, pitch=31, offset=3) for n in widths]
    args: dict[str, object] = {}
    expected, rings = [], []
    for i, (x, unit) in enumerate(zip(parts, units, strict=True)):
        w = taps(widths[i], 4)
        alone, ring = line_table(3 * widths[i]), line_table(3 * widths[i])
        expected.append((conv(library, x, w, alone, line=[2], act=1, unit=unit), alone))
        rings.append(ring)
        args |= {**x.args(f"x{i}"), f"w{i}": w, f"ring{i}": ring, f"channels{i}": widths[i]}
        args |= {f"unit{i}": unit, f"y{i}": poison((5, widths[i]), np.float32)}
    shared = {"rows": 5, "seqs": 1, "taps": 4, "act": 1, "eps": 1e-6}
    where = {"line": np.array([2], np.int32), "position": np.arange(5, dtype=np.int32)}
    library.call(f"conv_parts{count}", **args, **shared, **where)
    for i, (y, ring) in enumerate(expected):
        np.testing.assert_array_equal(args[f"y{i}"], y)
        np.testing.assert_array_equal(rings[i], ring)


# --- the gated delta rule ---------------------------------------------------------------------

SIZES = {"key_heads": 2, "heads": 6}


def delta_inputs(rows: int, dk: int, dv: int) -> dict[str, Array]:
    rng = np.random.default_rng([rows, dk])
    shapes = {"q": (rows, 2 * dk), "k": (rows, 2 * dk), "v": (rows, 6 * dv)}
    made = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    for name in "qk":
        units = made[name].reshape(rows, 2, dk)
        made[name] = (units / np.linalg.norm(units, axis=-1, keepdims=True)).reshape(rows, -1)
    made["g"] = -rng.uniform(0, 2, (rows, 6)).astype(np.float32)
    made["beta"] = rng.uniform(0, 1, (rows, 6)).astype(np.float32)
    return made


def exact_delta(x: dict[str, Array], dk: int, dv: int, scale: float) -> tuple[Array, Array]:
    rows = len(x["v"])
    q, k = (x[name].astype(np.float64).reshape(rows, 2, dk) for name in "qk")
    v = x["v"].astype(np.float64).reshape(rows, 6, dv)
    state, out = np.zeros((6, dk, dv)), np.empty((rows, 6, dv))
    for row, head in np.ndindex(rows, 6):
        s, key = state[head], k[row, head // 3]
        s *= np.exp(np.float64(x["g"][row, head]))
        s += x["beta"][row, head] * np.outer(key, v[row, head] - key @ s)
        out[row, head] = scale * (q[row, head // 3] @ s)
    return out.reshape(rows, -1), state


def delta(
    library: Library, x: dict[str, Array], state: Array, dk: int, dv: int, *, line: list[int],
    position: list[int],
) -> Array:  # fmt: skip
    rows = len(x["v"])
    y = poison((rows, 6 * dv), np.float32)
    library.call(
        "delta", **x, state=state, y=y, line=np.array(line, np.int32),
        position=np.array(position, np.int32), rows=rows, seqs=len(line), **SIZES, dk=dk, dv=dv,
        scale=0.3,
    )  # fmt: skip
    return y


@pytest.mark.parametrize(("dk", "dv"), [(6, 10), (16, 32), (33, 70)])
def test_delta_is_near_float64_and_any_pieces_agree(library: Library, dk: int, dv: int) -> None:
    x = delta_inputs(7, dk, dv)
    state = line_table(6 * dk * dv)
    y = delta(library, x, state, dk, dv, line=[3], position=list(range(7)))
    expected, last = exact_delta(x, dk, dv, 0.3)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state[3].reshape(last.shape), last, rtol=1e-4, atol=1e-6)
    assert np.isnan(np.delete(state, 3, axis=0)).all()
    for splits in ((1,) * 7, (4, 3)):
        again = line_table(6 * dk * dv)
        ends = [0, *np.cumsum(splits).tolist()]
        made = []
        for a, b in pairwise(ends):
            piece = {name: value[a:b].copy() for name, value in x.items()}
            at = list(range(a, b))
            made.append(delta(library, piece, again, dk, dv, line=[3], position=at))
        np.testing.assert_array_equal(np.concatenate(made), y)
        np.testing.assert_array_equal(again, state)


def test_a_batch_of_deltas_is_its_sequences(library: Library) -> None:
    x = delta_inputs(3, 8, 12)
    state, apart = line_table(6 * 96), line_table(6 * 96)
    state[4] = apart[4] = 0.5
    y = delta(library, x, state, 8, 12, line=[4, 1, 3], position=[9, 0, 0])
    for i, line in enumerate([4, 1, 3]):
        own = {name: value[i : i + 1].copy() for name, value in x.items()}
        alone = delta(library, own, apart, 8, 12, line=[line], position=[9 if i == 0 else 0])
        np.testing.assert_array_equal(y[i], alone[0])
    np.testing.assert_array_equal(state, apart)


def test_decays_and_gates_are_their_parts(library: Library) -> None:
    rng = np.random.default_rng(5)
    a = windowed(rng, 4, units=2, width=3, pitch=7, offset=1)
    b = windowed(rng, 4, units=2, width=3, pitch=7, offset=4)
    a_log, dt = rng.standard_normal((2, 6)).astype(np.float32)
    g = poison((4, 6), np.float32)
    library.call("decay", **a.args("a"), a_log=a_log, dt=dt, y=g, rows=4, heads=6)
    wide = a.dense.astype(np.float64)
    np.testing.assert_allclose(g, -np.exp(np.float64(a_log)) * softplus(wide + dt), rtol=2e-6)
    beta = poison((4, 6), np.float32)
    library.call("sigmoid_p", **b.args("x"), y=beta, rows=4, width=6)
    np.testing.assert_allclose(beta, sigmoid(b.dense.astype(np.float64)), rtol=1e-6)

    x = delta_inputs(4, 8, 12) | {"g": g, "beta": beta}
    state, fused = line_table(6 * 96), line_table(6 * 96)
    expected = delta(library, x, state, 8, 12, line=[1], position=[0, 1, 2, 3])
    y = poison(expected.shape, np.float32)
    plain = {name: x[name] for name in "qkv"}
    library.call(
        "delta_gates", **plain, **a.args("a"), **b.args("b"), a_log=a_log, dt=dt, state=fused, y=y,
        line=np.array([1], np.int32), position=np.arange(4, dtype=np.int32), rows=4, seqs=1,
        **SIZES, dk=8, dv=12, scale=0.3,
    )  # fmt: skip
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(fused, state)
