"""Built-in products: how many arguments of which kinds, and what their operands must hold."""

import pytest

from bedstone.errors import KernelError
from bedstone.runtime.builtin import builtin_uses
from bedstone.runtime.cuda.externs import (
    PRODUCTS,
    Size,
    product_of,
    reachable_sizes,
    require_room,
    size_of,
)
from bedstone.runtime.device import BuiltinUse
from bedstone.runtime.lower import Kernel, lower
from bedstone.spec.manifest import (
    I32,
    Add,
    BufArg,
    Buffer,
    BufferParam,
    BytesParam,
    Call,
    ExprArg,
    ExternLaunch,
    GemmAlgo,
    Impl,
    Manifest,
    Mul,
    Op,
    Program,
    ScalarParam,
    StateParam,
    Var,
    VarArg,
    When,
)

PTR, INT, LONG = BufferParam("in", "bf16"), ScalarParam("i32"), ScalarParam("i64")
BF16 = PRODUCTS["extern:cublaslt_bf16_tn"]
FP8 = PRODUCTS["extern:cublaslt_fp8_tn"]
ALGO = GemmAlgo(1, 0, 0, 1, 0, 0, 0, 0, 0)
COUNTS = {
    "cublaslt_bf16_tn": (3, 6, 8), "cublaslt_bf16_tn_acc": (3, 6, 8),
    "cublas_bf16_tn_f32": (3, 6, 7), "cublaslt_fp8_tn": (5, 8, 9), "cublaslt_fp8_tn_f32": (5, 8, 9),
}  # fmt: skip


def kernel(entry, pointers, count):
    """As many arguments, those past the pointers numbers of either width."""
    params = [PTR if at < pointers else (INT, LONG)[at % 2] for at in range(count)]
    return Kernel(None, f"extern:{entry}", tuple(params))


@pytest.mark.parametrize("entry", COUNTS)
@pytest.mark.parametrize("count", range(4, 11))
def test_the_number_of_arguments(entry, count):
    pointers, least, most = COUNTS[entry]
    given = kernel(entry, pointers, count)
    if least <= count <= most:
        assert product_of(given).pointers == pointers
    else:
        with pytest.raises(
            KernelError, match=rf"extern gemm takes {least}\.\.={most} args \(a, w, c.*got {count}$"
        ):
            product_of(given)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ((INT, PTR, PTR, INT, INT, INT), "arg #0 is `i32`, expected a pointer"),
        ((PTR, PTR, PTR, INT, PTR, INT), r"arg #4 is `in buffer<bf16>`, expected an i32 or i64"),
        ((PTR, PTR, PTR, INT, INT, ScalarParam("f32")), "arg #5 is `f32`, expected an i32 or i64"),
        ((PTR, PTR, PTR, INT, INT, BytesParam(4)), "arg #5 is `bytes<4>`"),
    ],
)
def test_arguments_of_another_kind(params, message):
    with pytest.raises(KernelError, match=message):
        product_of(Kernel(None, "extern:cublaslt_bf16_tn", params))
    assert product_of(Kernel(None, BF16.entry, (StateParam("in"), PTR, PTR, INT, LONG, INT)))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "extern:x",
            "unsupported extern `extern:x`: the cuda device has `extern:cublaslt_bf16_tn`",
        ),
        ("extern:nccl_allreduce_f32", "needs a group of processes, and this one runs alone"),
    ],
)
def test_externs_that_are_not_there(entry, message):
    with pytest.raises(KernelError, match=message):
        product_of(Kernel(None, entry, ()))


@pytest.mark.parametrize(
    ("numbers", "size"),
    [
        ((2, 3, 5), Size(2, 3, 5, 3, 5)),
        ((2, 3, 5, 7), Size(2, 3, 5, 7, 5)),
        ((2, 3, 5, 7, 9), Size(2, 3, 5, 7, 9)),
        ((0, 3, 5), Size(0, 3, 5, 3, 5)),
    ],
)
def test_row_strides_default_to_the_row(numbers, size):
    assert size_of(BF16, numbers) == size
    assert size.empty == (0 in numbers)


@pytest.mark.parametrize(
    ("product", "numbers", "message"),
    [
        (BF16, (2, 3, 5, 2), "rows of C 2 and of A 5 elements apart: expected 3 and 5 at least"),
        (BF16, (2, 3, 5, 3, 4), "rows of C 3 and of A 4"),
        (BF16, (2**64 - 1, 3, 5), "expected 0 to 2147483647 each"),
        (FP8, (2, 3, 24), "in fp8 of k=24: expected a multiple of 16"),
    ],
)
def test_sizes_that_are_none(product, numbers, message):
    with pytest.raises(KernelError, match=message):
        size_of(product, numbers)


@pytest.mark.parametrize("short", [None, "A", "W", "C", "the scale of W"])
@pytest.mark.parametrize("product", [BF16, FP8])
def test_operands_hold_what_the_largest_size_touches(product, short):
    one, two = (1, 2) if product is FP8 else (2, 2)
    needed = {"A": (2 * 40 + 32) * one, "W": 5 * 32 * one, "C": (2 * 9 + 5) * two}
    if product is FP8:
        needed |= {"the scale of A": 4, "the scale of W": 4}
    numbers = (3, 5, 32, 9) if product is FP8 else (3, 5, 32, 9, 40)
    if product is FP8:
        needed["A"] = 3 * 32
    room = tuple(size - (name == short) for name, size in needed.items())
    use = BuiltinUse("program `p` call #0", room, numbers, ())
    if short not in needed:
        require_room(product, use)
    else:
        with pytest.raises(KernelError, match=f"program `p` call #0: {short} takes"):
            require_room(product, use)


def test_nothing_to_compute_needs_no_room():
    require_room(BF16, BuiltinUse("p", (0, 0, 0), (4, 0, 8), ()))


def uses(*args, when=None, algo=ALGO, **most):
    params = (PTR, PTR, BufferParam("out", "bf16"), *[INT] * (len(args)))
    launch = ExternLaunch(BF16.entry, algo=algo, when=when)
    buffers = {n: Buffer("bf16", (100,), "inout") for n in "awc"}
    calls = (Call("f", (BufArg("a"), BufArg("w", 20), BufArg("c"), *args)),)
    manifest = Manifest(
        "m", buffers, {}, {"f": Op(params, Impl((launch,)))}, {"p": Program(calls)},
        vars={name: Var(value) for name, value in most.items()},
    )  # fmt: skip
    lowered = lower(manifest, "p", {})
    return [use for _, use in builtin_uses(lowered, manifest, lambda p: 200 - p.offset)]


def test_every_size_the_vars_can_give():
    (use,) = uses(VarArg("n"), ExprArg(Mul("n", 2)), I32(8), n=4)
    assert use.room == (200, 180, 200)
    assert use.largest == (4, 8, 8)
    assert use.reachable == ((1, 2, 8), (2, 4, 8), (3, 6, 8), (4, 8, 8))
    assert reachable_sizes(BF16, use)[0] == Size(1, 2, 8, 2, 8)


def test_two_vars_give_every_combination_once():
    (use,) = uses(ExprArg(Add("a", "b")), I32(4), I32(8), a=3, b=2)
    assert use.reachable == tuple((m, 4, 8) for m in (2, 3, 4, 5))


@pytest.mark.parametrize(
    ("when", "values"),
    [
        (When("n", None, 2), (1, 2)),
        (When("n", 3, None), (3, 4)),
        (When("n", 2, 3), (2, 3)),
        (When("k", 2, None), (1, 2, 3, 4)),
    ],
)
def test_a_condition_narrows_what_can_run(when, values):
    (use,) = uses(VarArg("n"), I32(4), I32(8), when=when, n=4, k=9)
    assert tuple(m for m, _, _ in use.reachable) == values
    assert use.largest[0] == values[-1]


def test_a_launch_that_never_runs_has_no_use():
    assert uses(VarArg("n"), I32(4), I32(8), when=When("n", 5, None), n=4) == []


def test_nothing_pinned_needs_no_list():
    (use,) = uses(VarArg("n"), I32(4), I32(8), algo=None, n=2**40)
    assert use.reachable == ()
    assert use.largest[0] == 2**40


def test_more_sizes_than_can_be_tried_are_refused():
    with pytest.raises(KernelError, match="is checked at every size it can run at, and `n` give"):
        uses(VarArg("n"), I32(4), I32(8), n=2**20)


def test_a_size_that_is_none_is_refused_where_it_is_pinned():
    (use,) = uses(VarArg("n"), I32(4), I32(8), I32(3), n=2)
    with pytest.raises(KernelError, match=r"program `p` call #0 .* rows of C 3"):
        reachable_sizes(BF16, use)
