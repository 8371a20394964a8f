"""Experts, routers and heads that read bfloat16 activations: against float64 of the same codes."""

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from bedstone.library.coding import BF16
from bedstone.spec.dtype import FormatName
from kernels import test_linear
from kernels.harness import poison, windowed
from kernels.reference import ACTS, Array, weights
from kernels.test_mixture import best, chosen_ids

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

pytestmark = pytest.mark.gpu
formats = pytest.mark.parametrize("name", sorted(BF16.formats))

EXPERTS, CHOSEN = 5, 3
K = test_linear.K | {"f16": 56}
"""Rows of codes are whole eights."""


def codes(x: Array) -> Array:
    return x.astype(ml_dtypes.bfloat16)


def matrix(name: FormatName, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A matrix as stored, and in float64 what the matrix units read of it, of about unit length."""
    w, values = weights(name, n, K[name], rng)
    return w, codes(values.astype(np.float32)).astype(np.float64)


def inputs(rng: np.random.Generator, rows: int, k: int, scale: float = 1.0) -> tuple[Array, Array]:
    x = codes((scale * rng.standard_normal((rows, k))).astype(np.float32))
    return x, x.astype(np.float64)


def assert_near(y: Array, expected: Array) -> None:
    assert np.abs(y - expected).max() <= 2e-5 * np.abs(expected).max()


def products(x: Array, values: Array, ids: Array, n: int) -> Array:
    """Of each row's choices; `x` [rows, units, k]."""
    stack = values.reshape(EXPERTS, n, -1)[ids]
    return np.einsum("rck,rcnk->rcn", np.broadcast_to(x, (len(x), CHOSEN, x.shape[2])), stack)


def outputs(form: str, name: str, shape: tuple[int, int]) -> dict[str, Array]:
    made = {} if form == "_q" else {name: poison(shape, np.float32)}
    return made | ({} if form == "" else {f"{name}q": poison(shape, ml_dtypes.bfloat16)})


def assert_forms_near(made: dict[str, Array], name: str, expected: Array) -> None:
    if name in made:
        assert_near(made[name], expected)
    if f"{name}q" in made:
        wide = made[f"{name}q"].astype(np.float32)
        assert np.abs(wide - expected).max() <= 2**-8 * np.abs(expected).max()
    if name in made and f"{name}q" in made:
        np.testing.assert_array_equal(made[f"{name}q"], codes(made[name]))


@formats
@pytest.mark.parametrize("units", [1, CHOSEN])
def test_xlinear(gpu_library: "GpuLibrary", name: FormatName, units: int) -> None:
    rng = np.random.default_rng(len(name))
    rows, k, n = 150, K[name], 41
    w, values = matrix(name, EXPERTS * n, rng)
    ids = chosen_ids(rng, rows, EXPERTS, CHOSEN)
    xq, x = inputs(rng, rows, units * k)
    sizes = {"chosen": CHOSEN, "units": units, "k": k, "n": n}
    y = poison((rows, CHOSEN * n), np.float32)
    gpu_library.call(f"xlinear_q_{name}", xq=xq, ids=ids, w=w, y=y, rows=rows, **sizes)
    assert_near(y.reshape(rows, CHOSEN, n), products(x.reshape(rows, units, k), values, ids, n))
    alone = poison((1, CHOSEN * n), np.float32)
    one = {"xq": xq[70:71].copy(), "ids": ids[70:71].copy()}
    gpu_library.call(f"xlinear_q_{name}", **one, w=w, y=alone, rows=1, **sizes)
    np.testing.assert_array_equal(alone[0], y[70])


def test_every_row_may_choose_one_expert_more_than_once(gpu_library: "GpuLibrary") -> None:
    """More pairs than are sorted at a time, of more experts than there are blocks."""
    rng = np.random.default_rng(0)
    rows, chosen, experts, k, n = 700, 32, 300, 64, 5
    w, values = weights("bf16", experts * n, k, rng)
    ids = rng.integers(0, experts, (rows, chosen)).astype(np.int32)
    xq, x = inputs(rng, rows, k)
    y = poison((rows, chosen * n), np.float32)
    sizes = {"rows": rows, "chosen": chosen, "units": 1, "k": k, "n": n}
    gpu_library.call("xlinear_q_bf16", xq=xq, ids=ids, w=w, y=y, **sizes)
    every = np.einsum("rk,enk->ren", x, values.reshape(experts, n, k))
    expected = np.take_along_axis(every, ids[..., None], axis=1)
    assert_near(y.reshape(rows, chosen, n), expected)


@formats
@pytest.mark.parametrize(("rows", "act"), [(9, 0), (70, 1)])
def test_xglu(gpu_library: "GpuLibrary", name: FormatName, rows: int, act: int) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, n, own = K[name], 64, 160
    (wg, gate), (wu, up) = (matrix(name, EXPERTS * n, rng) for _ in range(2))
    (sg, own_gate), (su, own_up) = (matrix(name, own, rng) for _ in range(2))
    ids = chosen_ids(rng, rows, EXPERTS, CHOSEN)
    xq, x = inputs(rng, rows, k, 1 / np.abs(gate).max() / np.sqrt(k))
    plain = xq.astype(np.float32)
    y = ACTS[act](products(x[:, None], gate, ids, n)) * products(x[:, None], up, ids, n)
    z = ACTS[act](x @ own_gate.T) * (x @ own_up.T)
    gx = {"gx": plain, "gw": (5 * rng.standard_normal(k)).astype(np.float32)}
    share = 1 / (1 + np.exp(-(plain.astype(np.float64) @ gx["gw"].astype(np.float64))))
    shares = []
    sizes = {"rows": rows, "chosen": CHOSEN, "k": k, "n": n, "act": act}
    for ending in ("", "_s", "_sg"):
        also = {"sg": sg, "su": su, "sn": own} if ending else {}
        also |= gx if ending == "_sg" else {}
        for form in ("", "_q", "_fq"):
            made = outputs(form, "y", (rows, CHOSEN * n))
            made |= outputs(form, "z", (rows, own)) if ending else {}
            made |= {"share": poison((rows,), np.float32)} if ending == "_sg" else {}
            called = f"xglu{ending}_q_{name}{form}"
            gpu_library.call(called, xq=xq, ids=ids, wg=wg, wu=wu, **sizes, **also, **made)
            assert_forms_near(made, "y", y.reshape(rows, -1))
            assert_forms_near(made, "z", z)
            shares += [made["share"]] if "share" in made else []
    np.testing.assert_allclose(shares[0], share, rtol=1e-5)
    assert all(np.array_equal(each, shares[0]) for each in shares)


@formats
@pytest.mark.parametrize("rows", [1, 300])
def test_xdown(gpu_library: "GpuLibrary", name: FormatName, rows: int) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, n = K[name], 37
    (w, values), (sw, own) = matrix(name, EXPERTS * n, rng), matrix(name, n, rng)
    ids = chosen_ids(rng, rows, EXPERTS, CHOSEN)
    weight = rng.uniform(0, 1, (rows, CHOSEN)).astype(np.float32)
    xq, x = inputs(rng, rows, CHOSEN * k)
    zq, z = inputs(rng, rows, k)
    share = rng.uniform(0, 1, rows).astype(np.float32)
    each = products(x.reshape(rows, CHOSEN, k), values, ids, n)
    routed = (each * weight[..., None].astype(np.float64)).sum(1)
    shared = z @ own.T
    expected = {"": routed, "_s": routed + shared, "_sg": routed + shared * share[:, None]}
    sizes = {"rows": rows, "chosen": CHOSEN, "k": k, "n": n}
    for ending, wanted in expected.items():
        also = {"zq": zq, "sw": sw, "sn": k} if ending else {}
        also |= {"share": share} if ending == "_sg" else {}
        y = poison((rows, n), np.float32)
        called = f"xdown{ending}_q_{name}"
        gpu_library.call(called, xq=xq, ids=ids, weights=weight, w=w, y=y, **sizes, **also)
        assert_near(y, wanted)


@formats
@pytest.mark.parametrize("biased", [False, True])
def test_route(gpu_library: "GpuLibrary", name: FormatName, *, biased: bool) -> None:
    rng = np.random.default_rng(len(name))
    rows, experts, k = 21, 72, K[name]
    w, values = matrix(name, experts, rng)
    xq, x = inputs(rng, rows, k, 2 / np.abs(values).max() / np.sqrt(k))
    logits = x @ values.T
    scores = np.exp(logits - logits.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    bias = {"bias": rng.uniform(0, 0.02, experts).astype(np.float32)} if biased else {}
    ids, weight = poison((rows, 4), np.int32), poison((rows, 4), np.float32)
    sizes = {"rows": rows, "k": k, "experts": experts, "chosen": 4, "normalise": 1, "factor": 1.5}
    groups = {"groups": 1, "group_k": 1, "group_best": 1, "fn": 0}
    called = f"route_q_{name}{'_b' if biased else ''}"
    gpu_library.call(called, xq=xq, w=w, **bias, ids=ids, weights=weight, **sizes, **groups)
    np.testing.assert_array_equal(ids, best(scores + bias.get("bias", 0), 4))
    taken = np.take_along_axis(scores, ids, axis=1)
    np.testing.assert_allclose(weight, 1.5 * taken / taken.sum(1, keepdims=True), rtol=1e-4)


@formats
@pytest.mark.parametrize("rows", [1, 70])
@pytest.mark.parametrize("form", ["", "_q", "_fq"])
def test_hlinear(gpu_library: "GpuLibrary", name: FormatName, rows: int, form: str) -> None:
    rng = np.random.default_rng([rows, len(name)])
    k, n = K[name], 64
    w, values = matrix(name, 3 * n, rng)
    part = windowed(rng, rows, units=3, width=k, pitch=k + 8, offset=8)
    made = outputs(form, "y", (rows, 3 * n))
    args = part.args("x")
    args["xq"] = codes(args.pop("x"))
    sizes = {"rows": rows, "heads": 3, "k": k, "n": n}
    gpu_library.call(f"hlinear_q_{name}{form}", **args, w=w, **made, **sizes)
    x = codes(part.dense).astype(np.float64).reshape(rows, 3, k)
    expected = np.einsum("rhk,hnk->rhn", x, values.reshape(3, n, k))
    assert_forms_near(made, "y", expected.reshape(rows, -1))
