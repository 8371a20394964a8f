"""Attention on a GPU: the kernels taken for some sizes compute what the plain ones do."""

from dataclasses import replace
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from kernels.harness import poison, windowed
from kernels.reference import Array, attention, sigmoid
from kernels.test_attention import CASES, Case, Problem, problem

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

pytestmark = pytest.mark.gpu

BF16 = ml_dtypes.bfloat16
TOLERANCE = {"": 2e-5, "_x8": 2e-5, "_d128": 1e-4, "_d128_x8": 1e-4, "_m128": 3e-2, "_w128": 3e-2}


def run(library: "GpuLibrary", entry: str, args: dict) -> Array:
    y = poison((args["rows"], args["heads"], args["dv"]), np.float32)
    library.call(entry, **args, y=y)
    return y


def halved(case: Case) -> Problem:
    """The same with tables of bfloat16, and what follows from their values."""
    p = problem(case)
    tables = {name: p.args[name].astype(BF16) for name in ("k", "v")}
    k, v = (tables[name].astype(np.float64) for name in ("k", "v"))
    limits = {"window": case.window, "softcap": case.softcap}
    expected = []
    for r, position in enumerate(case.positions):
        at = np.arange(position + 1)
        pages = p.args["pages"][r * case.stride]
        slot = pages[at // case.page] * case.page + at % case.page
        q = p.args["q"][r]
        expected.append(attention(q, k[slot], v[slot], position, case.scale, **limits))
    return Problem(p.args | tables, np.array(expected))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_blocks_that_share_a_row_change_no_bit(gpu_library: "GpuLibrary", case: Case) -> None:
    args = problem(case).args
    shared, alone = (run(gpu_library, entry, args) for entry in ("attention_x8", "attention"))
    np.testing.assert_array_equal(shared, alone)


@pytest.mark.parametrize("spread", ["", "_x8"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tables_of_bfloat16(half_library: "GpuLibrary", case: Case, spread: str) -> None:
    p = halved(case)
    y = run(half_library, f"attention{spread}", p.args)
    np.testing.assert_allclose(y, p.expected, rtol=1e-5, atol=2e-6)


WIDE = {
    "one position": Case(4, 1, 128, 128, (0,)),
    "eight heads to a group": Case(16, 2, 128, 128, (700,)),
    "each head its own keys": Case(3, 3, 128, 128, (31, 32)),
    "more heads than a pass takes": Case(24, 2, 128, 128, (77,)),
    "pages of no power of two": Case(8, 2, 128, 128, (300,), page=5),
    "a window": Case(8, 2, 128, 128, (500, 501, 3), window=130),
    "a cap": Case(8, 2, 128, 128, (200,), softcap=2.0),
    "a batch": Case(8, 2, 128, 128, (3, 77, 0, 1300, 64, 63), stride=1),
    "long": Case(8, 2, 128, 128, (5000,), page=64),
}


def at_depth(case: Case, depth: int) -> Case:
    return replace(case, dk=depth, dv=depth, scale=depth**-0.5)


@pytest.mark.parametrize("spread", ["", "_x8"])
@pytest.mark.parametrize("depth", [64, 128, 256])
@pytest.mark.parametrize("case", WIDE.values(), ids=WIDE)
def test_one_row_on_the_matrix_units(
    half_library: "GpuLibrary", case: Case, depth: int, spread: str
) -> None:
    p = halved(at_depth(case, depth))
    y = run(half_library, f"attention_d{depth}{spread}", p.args)
    np.testing.assert_allclose(y, p.expected, rtol=1e-4, atol=2e-5)


MANY = {
    "a prompt": Case(8, 2, 128, 128, tuple(range(300))),
    "a later piece": Case(8, 2, 128, 128, tuple(range(190, 333))),
    "pages of no power of two": Case(3, 1, 128, 128, tuple(range(130)), page=5),
    "a window": Case(4, 2, 128, 128, tuple(range(350)), window=70),
    "a cap": Case(4, 2, 128, 128, tuple(range(20, 40)), softcap=2.0),
    "one row": Case(4, 2, 128, 128, (200,)),
    "pages of boxes": Case(8, 2, 128, 128, tuple(range(600)), page=32),
    "a later piece of longer pages": Case(8, 2, 128, 128, tuple(range(450, 700)), page=64),
    "a window over boxes": Case(4, 1, 128, 128, tuple(range(500, 800)), page=32, window=300),
    "more heads than blocks": Case(140, 2, 128, 128, tuple(range(150)), page=32),
}


@pytest.mark.parametrize("way", ["m", "w"])
@pytest.mark.parametrize("depth", [64, 128, 256])
@pytest.mark.parametrize("case", MANY.values(), ids=MANY)
def test_many_rows_on_the_matrix_units(
    half_library: "GpuLibrary", case: Case, depth: int, way: str
) -> None:
    """Queries and weights are bfloat16: eight bits of a value."""
    p = halved(at_depth(case, depth))
    y = run(half_library, f"attention_{way}{depth}", p.args)
    assert np.linalg.norm(y - p.expected) < 4e-3 * np.linalg.norm(p.expected)
    np.testing.assert_allclose(y, p.expected, rtol=0, atol=3e-2)


@pytest.mark.parametrize("variant", ["", "_x8", "_d128", "_d128_x8", "_m128", "_w128"])
def test_codes_are_the_result_to_bfloat16(half_library: "GpuLibrary", variant: str) -> None:
    p = halved(Case(8, 2, 128, 128, (40, 41, 300)))
    y = run(half_library, f"attention{variant}", p.args)
    codes, codes_beside = poison(y.shape, BF16), poison(y.shape, BF16)
    half_library.call(f"attention_q{variant}", **p.args, yq=codes)
    beside = poison(y.shape, np.float32)
    half_library.call(f"attention_fq{variant}", **p.args, y=beside, yq=codes_beside)
    np.testing.assert_array_equal(beside, y)
    for made in (codes, codes_beside):
        np.testing.assert_array_equal(made, y.astype(BF16))


@pytest.mark.parametrize("variant", ["", "_x8", "_d128", "_d128_x8", "_m128", "_w128"])
def test_a_gate_multiplies_the_result(half_library: "GpuLibrary", variant: str) -> None:
    p = halved(Case(8, 2, 128, 128, (40, 300)))
    gate = windowed(np.random.default_rng(3), 2, units=8, width=128, pitch=256, offset=128)
    y = run(half_library, f"attention_gate{variant}", p.args | gate.args("gate"))
    by = sigmoid(gate.dense.astype(np.float64)).reshape(y.shape)
    exact = TOLERANCE[variant]
    np.testing.assert_allclose(y, p.expected * by, rtol=exact, atol=exact)


@pytest.mark.parametrize("variant", ["", "_x8", "_d128", "_d128_x8", "_m128", "_w128"])
def test_a_row_without_a_position_is_zero(half_library: "GpuLibrary", variant: str) -> None:
    p = halved(Case(4, 1, 128, 128, (4, 5)))
    args = p.args | {"position": np.array([4, -1], np.int32)}
    y = run(half_library, f"attention{variant}", args)
    exact = TOLERANCE[variant]
    np.testing.assert_allclose(y[0], p.expected[0], rtol=exact, atol=exact)
    np.testing.assert_array_equal(y[1], 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("variant", ["", "_x8", "_d128", "_d128_x8", "_m128", "_w128"])
def test_a_score_that_is_not_finite_stays_so(
    half_library: "GpuLibrary", variant: str, bad: float
) -> None:
    p = halved(Case(4, 1, 128, 128, (150,)))
    slot = p.args["pages"][0, 100 // 16] * 16 + 100 % 16
    p.args["k"][slot] = bad
    p.args["q"][...] = np.abs(p.args["q"])
    assert not np.isfinite(run(half_library, f"attention{variant}", p.args)).any()


TURNED = {
    "one position": Case(4, 1, 128, 128, (0,)),
    "a position begins a page": Case(16, 2, 128, 128, (704,)),
    "more heads than a pass takes": Case(24, 2, 128, 128, (77,)),
    "pages of no power of two": Case(8, 2, 128, 128, (300,), page=5),
    "a window": Case(8, 2, 128, 128, (500,), window=130),
    "a batch": Case(8, 2, 128, 128, (3, 77, 0, 1300, 64, 63), stride=1),
    "long": Case(8, 2, 128, 128, (5000,), page=64),
}


def rotation(p: Problem, depth: int) -> dict:
    """What a rotation is given of the same rows: its keys go where their positions lie."""
    rng = np.random.default_rng(5)
    args, rows = p.args, p.args["rows"]
    positions = args["position"]
    at = positions.clip(0)
    pages = args["pages"][np.arange(rows) * args["stride"], at // args["page"]]
    slot = np.where(positions < 0, -1, pages * args["page"] + at % args["page"])
    angles = rng.uniform(-3, 3, (at.max() + 1, depth // 2))
    return {
        "x0": rng.standard_normal((rows, args["heads"] * depth)).astype(np.float32),
        "x1": rng.standard_normal((rows, args["groups"] * depth)).astype(np.float32),
        "cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32),
        "slot": slot.astype(np.int32), "heads0": args["heads"], "heads1": args["groups"],
        "head_dim": depth, "rot": depth, "kind": 0,
    }  # fmt: skip


def apart(library: "GpuLibrary", normed: str, variant: str, p: Problem, turn: dict) -> Array:
    """Queries and keys rotated by a launch of their own; the table is left as that leaves it."""
    queries = poison(p.args["q"].shape, np.float32)
    beside = {"position": p.args["position"], "rows": p.args["rows"]}
    library.call(f"rope_parts{normed}_rows", **turn, **beside, y0=queries, table=p.args["k"])
    return run(library, f"attention{variant}", p.args | {"q": queries})


def require_the_same(
    library: "GpuLibrary", normed: str, variant: str, p: Problem, turn: dict
) -> None:
    keys = p.args["k"].copy()
    expected, table = apart(library, normed, variant, p, turn), p.args["k"]
    args = {name: value for name, value in p.args.items() if name not in ("q", "k")}
    y = poison(expected.shape, np.float32)
    library.call(f"attention_turned{normed}{variant}", **(args | turn), table=keys, y=y)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(keys.view(np.uint16), table.view(np.uint16))
    coded = poison(y.shape, BF16)
    library.call(f"attention_turned{normed}_q{variant}", **(args | turn), table=keys, yq=coded)
    np.testing.assert_array_equal(coded, y.astype(BF16))


@pytest.mark.parametrize("spread", ["", "_x8"])
@pytest.mark.parametrize("depth", [64, 128, 256])
@pytest.mark.parametrize("case", TURNED.values(), ids=TURNED)
def test_rotated_in_the_same_launch_is_rotated_before(
    half_library: "GpuLibrary", case: Case, depth: int, spread: str
) -> None:
    p = halved(at_depth(case, depth))
    rng = np.random.default_rng(6)
    weights = {f"w{i}": rng.standard_normal(depth).astype(np.float32) for i in range(2)}
    normed = {"eps": 1e-6, "plus_one": 1, **weights}
    turn, variant = rotation(p, depth), f"_d{depth}{spread}"
    require_the_same(half_library, "_n", variant, p, turn | normed)
    require_the_same(half_library, "", variant, p, turn | {"rot": depth // 2, "kind": 1})


def test_a_row_without_a_position_leaves_no_key(half_library: "GpuLibrary") -> None:
    p = halved(Case(4, 1, 128, 128, (4, 5), stride=1))
    p.args["position"][1] = -1
    require_the_same(half_library, "", "_d128", p, rotation(p, 128))
