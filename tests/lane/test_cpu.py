"""What the CPU's kernels have no room for is said, not run."""

from dataclasses import replace

import pytest

from bedstone.graph.step import AtParam
from bedstone.lane.cpu import CpuShim
from bedstone.lane.launch import (
    Attention,
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    GemmPart,
    Launch,
    Matrix,
    Parts,
    Read,
    Route,
    Routing,
    Split,
    Stack,
    ToBuf,
    ToRows,
    Version,
)
from bedstone.library.catalog import cpu_kernels

SHIM = CpuShim(cpu_kernels())
X, IDS, Y = Read("x"), Read("ids"), ToBuf("y")


def attention(dk: int, dv: int) -> Attention:
    k, v = Version("k", "k"), Version("v", "v")
    sizes = {"rows": 1, "heads": 4, "groups": 2, "dk": dk, "dv": dv, "span": 64, "splits": 1}
    rest = {"scale": 1.0, "window": None, "softcap": None, "share_rows": True}
    return Attention(q=X, k=k, v=v, pos="pos", dst=Y, **sizes, **rest)


def stacked(count: int) -> tuple[Launch, ...]:
    m = Stack("w", "f32", count, 8, 8)
    routing = Routing(count, 2, 1, 1, 1, None)
    router = Matrix("r", "f32", count, 8)
    return (
        Route(X, router, "softmax", routing, True, 1.0, 1, ToBuf("ids"), Y),
        ExpertProduct(X, IDS, m, 1, 2, 1, Y),
        ExpertGlu(X, IDS, m, m, "silu", 1, 2, Y),
        ExpertSum(X, IDS, Read("weights"), m, 1, 2, Y),
    )


@pytest.mark.parametrize("at", range(4))
def test_more_experts_than_are_held_at_once(at):
    assert SHIM.lacks(stacked(1024)[at]) is None
    assert SHIM.lacks(stacked(1025)[at]) == "1025 experts are more than 1024"


def test_products_of_one_input_are_one_launch_of_few_rows():
    matrix = Matrix("w", "f32", 8, 8)
    few = Parts(X, 8, (GemmPart(matrix, Y), GemmPart(matrix, ToBuf("z"))))
    assert SHIM.lacks(few) is None
    assert SHIM.lacks(replace(few, rows=9)) == "9 rows are no GEMV, which takes 8"


def test_keys_too_wide_for_the_scratch():
    assert SHIM.lacks(attention(576, 512)) is None
    assert SHIM.lacks(attention(900, 512)) is None
    assert SHIM.lacks(attention(3000, 512)) == (
        "keys 3000 and values 512 wide do not fit its scratch"
    )


def test_rows_go_where_a_kernel_puts_them():
    placed = ToRows("k", AtParam("pos"), "k@1")
    assert SHIM.lacks(ExpertSum(X, IDS, Read("w"), Stack("w", "f32", 4, 8, 8), 1, 2, placed)) == (
        "no kernel `xdown_f32_rows`"
    )


def test_queries_are_cut_between_fours():
    tail = Split(12, Read("qt"))
    assert SHIM.lacks(replace(attention(32, 16), v=None, split=tail)) is None
    odd = replace(attention(32, 16), v=None, split=replace(tail, own=10))
    assert SHIM.lacks(odd) == "the first 10 values of a query are no fours"
