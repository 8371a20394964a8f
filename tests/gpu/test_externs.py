"""The built-in products against float64, and what of them is refused at load."""

import ml_dtypes
import numpy as np
import pytest

from bedstone.errors import KernelError
from bedstone.runtime.load import Parts, load
from bedstone.spec.manifest import (
    I32,
    Batch,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    ExternLaunch,
    GemmAlgo,
    Impl,
    Manifest,
    Op,
    Program,
    ScalarParam,
    Var,
    VarArg,
    When,
)

BF16, FP8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
M, N, K = 96, 160, 256


def parts(entry, numbers, *, operand="bf16", result="bf16", algo=None, when=None, shapes=None):
    """A manifest of one product; `numbers` after the pointers, strings for vars."""
    a, w, c = shapes or ((M, K), (N, K), (M, N))
    scales = ["sa", "sw"] if operand == "fp8e4m3" else []
    buffers = {
        "a": Buffer(operand, a, "input"),
        "w": Buffer(operand, w, "input"),
        "c": Buffer(result, c, "inout"),
        **{name: Buffer("f32", (1,), "input") for name in scales},
    }
    kind = "inout" if entry.endswith("_acc") else "out"
    params = (
        BufferParam("in", operand), BufferParam("in", operand), BufferParam(kind, result),
        *[BufferParam("in", "f32") for _ in scales], *[ScalarParam("i32") for _ in numbers],
    )  # fmt: skip
    args = [BufArg(name) for name in ("a", "w", "c", *scales)]
    args += [VarArg(n) if isinstance(n, str) else I32(n) for n in numbers]
    launch = ExternLaunch(f"extern:{entry}", algo=algo, when=when)
    program = Program((Call("f", tuple(args)),), Batch(1, "m"), graph=True)
    return Parts(
        Manifest("m", buffers, {}, {"f": Op(params, Impl((launch,)))}, {"run": program},
                 vars={"m": Var(a[0])})
    )  # fmt: skip


def operands(dtype, *shapes):
    rng = np.random.default_rng(11)
    return [rng.standard_normal(shape).astype(np.float32).astype(dtype) for shape in shapes]


def run(package, inputs, m, start=None):
    with load(package, device="cuda") as session:
        for name, data in inputs.items():
            session.write(name, data)
        if start is not None:
            session.write("c", start)
        for _ in range(2):
            session.run("run", m=m)
        return session.read("c").astype(np.float64)


def close(found, want, bound):
    return np.linalg.norm(found - want) / np.linalg.norm(want) < bound


@pytest.mark.parametrize("m", [1, 7, M])
@pytest.mark.parametrize(
    ("entry", "result", "bound"),
    [("cublaslt_bf16_tn", "bf16", 4e-3), ("cublas_bf16_tn_f32", "f32", 1e-5)],
)
def test_a_product_is_a_times_w_transposed(entry, result, bound, m):
    a, w = operands(BF16, (M, K), (N, K))
    found = run(parts(entry, ("m", N, K), result=result), {"a": a, "w": w}, m)
    want = a[:m].astype(np.float64) @ w.astype(np.float64).T
    assert close(found[:m], want, bound)
    assert not found[m:].any()


def test_a_product_adds_to_what_is_there():
    a, w, c = operands(BF16, (M, K), (N, K), (M, N))
    found = run(parts("cublaslt_bf16_tn_acc", ("m", N, K)), {"a": a, "w": w}, M, c)
    want = c.astype(np.float64) + 2 * (a.astype(np.float64) @ w.astype(np.float64).T)
    assert close(found, want, 8e-3)


def test_rows_may_lie_further_apart():
    """A window of A and of C: rows of 256 of which 128, rows of 200 of which 160."""
    a, w = operands(BF16, (M, K), (N, 128))
    shapes = ((M, K), (N, 128), (M, 200))
    package = parts("cublaslt_bf16_tn", ("m", N, 128, 200, K), shapes=shapes)
    found = run(package, {"a": a, "w": w}, M)
    want = a[:, :128].astype(np.float64) @ w.astype(np.float64).T
    assert close(found[:, :N], want, 4e-3)
    assert not found[:, N:].any()


@pytest.mark.parametrize("numbers", [(0, N, K), (M, 0, K), (M, N, 0)])
@pytest.mark.parametrize("entry", ["cublaslt_bf16_tn", "cublaslt_bf16_tn_acc"])
def test_nothing_to_compute_leaves_what_is_there(entry, numbers):
    a, w, c = operands(BF16, (M, K), (N, K), (M, N))
    found = run(parts(entry, numbers), {"a": a, "w": w}, M, c)
    assert np.array_equal(found, c.astype(np.float64))


@pytest.mark.parametrize(
    ("entry", "result", "bound"),
    [("cublaslt_fp8_tn", "bf16", 4e-3), ("cublaslt_fp8_tn_f32", "f32", 1e-3)],
)
def test_fp8_products_are_scaled(entry, result, bound):
    a, w = operands(FP8, (M, K), (N, K))
    scales = np.array([0.5], np.float32), np.array([3.0], np.float32)
    package = parts(entry, ("m", N, K), operand="fp8e4m3", result=result)
    inputs = {"a": a, "w": w, "sa": scales[0], "sw": scales[1]}
    found = run(package, inputs, M)
    want = 1.5 * (a.astype(np.float64) @ w.astype(np.float64).T)
    assert close(found, want, bound)


def test_a_pinned_algorithm_runs_at_every_size():
    """Algorithms are tried by number until one runs; it is then pinned by that number."""
    a, w = operands(BF16, (M, K), (N, K))
    found = None
    for number in range(80):
        algo = GemmAlgo(number, 0, 0, 1, 0, 0, 0, 0, 0)
        try:
            found = run(parts("cublaslt_bf16_tn", ("m", N, K), algo=algo), {"a": a, "w": w}, 17)
        except KernelError:
            continue
        break
    assert found is not None
    want = a[:17].astype(np.float64) @ w.astype(np.float64).T
    assert close(found[:17], want, 4e-3)


def test_an_algorithm_that_does_not_exist_is_refused_at_load():
    algo = GemmAlgo(9999, 0, 0, 1, 0, 0, 0, 0, 0)
    with pytest.raises(KernelError, match="the pinned algorithm 9999 does not run at m=1, n=160"):
        load(parts("cublaslt_bf16_tn", ("m", N, K), algo=algo), device="cuda")


def test_a_launch_that_never_runs_is_not_checked():
    algo = GemmAlgo(9999, 0, 0, 1, 0, 0, 0, 0, 0)
    package = parts("cublaslt_bf16_tn", ("m", N, K), algo=algo, when=When("m", 1000, None))
    load(package, device="cuda").close()


def test_operands_too_small_are_refused_at_load():
    with pytest.raises(KernelError, match=r"W takes 83456 bytes .* 81920 are left of its buffer"):
        load(parts("cublaslt_bf16_tn", ("m", N + 3, K, N + 3)), device="cuda")
