"""The model that a tail is held to: its codes cost little, and its norms' factors nothing."""

import numpy as np
import pytest

from kernels.reference import norm
from kernels.tail_model import LOT, Tail, as_they_are, coded

WIDTH, INNER, FF = 256, 192, 320
SHAPES = {
    "wo": (WIDTH, INNER), "wg": (FF, WIDTH), "wu": (FF, WIDTH), "wd": (WIDTH, FF),
    "w0": (96, WIDTH), "w1": (32, WIDTH), "w2": (7, WIDTH),
}  # fmt: skip


@pytest.fixture
def tail() -> Tail:
    rng = np.random.default_rng(7)
    matrices = {name: rng.standard_normal(shape) for name, shape in SHAPES.items()}
    args = {
        "attended": rng.standard_normal((1, INNER)), "x": rng.standard_normal((1, WIDTH)),
        "w_post": rng.standard_normal(WIDTH), "w_in": rng.standard_normal(WIDTH),
        "eps_post": np.float64(1e-5), "plus_one_post": np.float64(1),
        "eps": np.float64(0.5), "plus_one": np.float64(0), "act": np.float64(1),
    }  # fmt: skip
    return Tail(matrices, args)


def test_a_code_is_half_a_step_off_at_most() -> None:
    x = np.random.default_rng(1).standard_normal(8 * LOT).astype(np.float32)
    steps = np.repeat(np.abs(x.reshape(-1, LOT)).max(1) / 127, LOT)
    made = coded(x)
    assert (np.abs(made - x) <= steps * 0.5001).all()
    assert len(np.unique(np.rint(made / steps))) > 100
    assert not coded(np.zeros(LOT)).any()


def test_values_as_they_are_give_what_six_launches_compute(tail: Tail) -> None:
    held, args = tail.matrices, tail.args
    mid = args["x"] + args["attended"] @ held["wo"].T
    m = norm(mid, args["w_post"], WIDTH, 1e-5, 1)
    gate = m @ held["wg"].T
    h = gate / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
    total = mid + (h * (m @ held["wu"].T)) @ held["wd"].T
    xn = norm(total, args["w_in"], WIDTH, 0.5)
    made = tail.results(as_they_are)
    np.testing.assert_allclose(made["sum"], total[0], rtol=1e-9)
    for i in range(3):
        np.testing.assert_allclose(made[f"y{i}"], (xn @ held[f"w{i}"].T)[0], rtol=1e-9)


def test_codes_cost_a_hundredth(tail: Tail) -> None:
    exact = tail.results(as_they_are)
    for name, values in tail.results().items():
        off = np.linalg.norm(values - exact[name]) / np.linalg.norm(exact[name])
        assert 1e-3 < off < 0.03
