"""What a layer of bfloat16 weights does behind its attention, in one launch."""

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from kernels.harness import poison
from kernels.reference import ACTS, Array, norm, weights

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

pytestmark = pytest.mark.gpu
MATRICES = {
    "wo": ("width", "inner"), "wg": ("ff", "width"), "wu": ("ff", "width"), "wd": ("width", "ff"),
    "w0": ("n0", "width"), "w1": ("n1", "width"), "w2": ("n2", "width"),
}  # fmt: skip
NUMBERS = {"act": 0, "eps_post": 1e-5, "plus_one_post": 1, "eps": 1e-6, "plus_one": 0}
SMALL = {"inner": 512, "width": 480, "ff": 672, "n0": 300, "n1": 7, "n2": 45}
SIZES = {
    "small": SMALL,
    "fewer outputs than blocks": {
        "inner": 64, "width": 96, "ff": 544, "n0": 1, "n1": 1, "n2": 1,
    },
    "a step more than whole laps": {
        "inner": 2080, "width": 1056, "ff": 3104, "n0": 2048, "n1": 1024, "n2": 1024,
    },
    "of a model": {
        "inner": 2048, "width": 2048, "ff": 6144, "n0": 2048, "n1": 1024, "n2": 1024,
    },
    "more rows than wait at a time": {
        "inner": 512, "width": 512, "ff": 132 * 80, "n0": 132 * 140, "n1": 9, "n2": 3,
    },
    "the longest": {
        "inner": 1024, "width": 512, "ff": 24576, "n0": 64, "n1": 32, "n2": 32,
    },
}  # fmt: skip


def problem(sizes: dict[str, int], slot: int = 3) -> tuple[dict, dict[str, Array]]:
    """The operands of one launch, its results poisoned; and what its matrices say."""
    rng = np.random.default_rng(sizes["ff"])
    made = {n: weights("bf16", sizes[rows], sizes[k], rng) for n, (rows, k) in MATRICES.items()}
    row = lambda n: rng.standard_normal((1, sizes[n])).astype(np.float32)  # noqa: E731
    args = {
        **{name: stored for name, (stored, _) in made.items()}, **sizes, **NUMBERS,
        "attended": row("inner"), "x": row("width"), "w_post": row("width")[0],
        "w_in": row("width")[0], "sum": poison((1, sizes["width"]), np.float32),
        "y0": poison((1, sizes["n0"]), np.float32), "y1": poison((1, sizes["n1"]), np.float32),
        "slot": np.array([slot], np.int32), "table": np.zeros((8, sizes["n2"]), ml_dtypes.bfloat16),
    }  # fmt: skip
    return args, {name: values for name, (_, values) in made.items()}


def expected(args: dict, w: dict[str, Array]) -> dict[str, Array]:
    width = args["width"]
    mid = args["x"] + args["attended"].astype(np.float64) @ w["wo"].T
    m = norm(mid, args["w_post"], width, args["eps_post"], args["plus_one_post"])
    h = ACTS[args["act"]](m @ w["wg"].T) * (m @ w["wu"].T)
    total = mid + h @ w["wd"].T
    xn = norm(total, args["w_in"], width, args["eps"], args["plus_one"])
    table = np.zeros((8, args["n2"]))
    if args["slot"][0] >= 0:
        table[args["slot"][0]] = xn @ w["w2"].T
    return {"sum": total, "y0": xn @ w["w0"].T, "y1": xn @ w["w1"].T, "table": table}


def run(library: "GpuLibrary", args: dict) -> dict[str, Array]:
    library.call("tail_parts3_bf16_rows", **args)
    return {name: args[name] for name in ("sum", "y0", "y1", "table")}


def require_near(made: dict[str, Array], wanted: dict[str, Array]) -> None:
    """Sums of float32 products; a table's values are rounded as it holds them."""
    for name, values in wanted.items():
        near = 2**-8 if name == "table" else 1e-5
        error = np.linalg.norm(made[name].astype(np.float64) - values)
        assert error <= near * np.linalg.norm(values), name


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_one_launch_does_what_a_layer_does_behind_its_attention(
    half_library: "GpuLibrary", sizes: dict[str, int]
) -> None:
    args, w = problem(sizes)
    args["act"] = sizes["ff"] // 32 % 2
    require_near(run(half_library, args), expected(args, w))


def test_behind_the_last_layer_comes_the_head(half_library: "GpuLibrary") -> None:
    args, w = problem(SMALL | {"n0": 3000})
    wanted = expected(args, w)["y0"]
    head = {"w": args["w0"], "y": args["y0"], "n": 3000}
    for name in ("w0", "w1", "w2", "n0", "n1", "n2", "y0", "y1", "sum", "slot", "table"):
        del args[name]
    half_library.call("tail_linear_bf16", **args, **head)
    require_near({"y0": head["y"]}, {"y0": wanted})


def test_a_value_needs_all_bits_of_a_float(half_library: "GpuLibrary") -> None:
    """What is left of products that cancel is of bits that two terms would not have."""
    args, _ = problem(SMALL)
    wo = args["wo"]
    wo[:, 1::2] = -wo[:, ::2]
    args["attended"][0, 1::2] = args["attended"][0, ::2] * np.float32(1 + 2**-18)
    args["x"][...] = 0
    wanted = args["attended"].astype(np.float64) @ wo.astype(np.float64).T
    args["wd"][...] = 0
    made = run(half_library, args)["sum"]
    assert np.linalg.norm(made - wanted) <= 0.1 * np.linalg.norm(wanted)


def test_launches_one_after_the_other_hear_nothing_of_each_other(
    half_library: "GpuLibrary",
) -> None:
    """Results may lie over what is read, and zeros are told too; each time the same bits."""
    args, w = problem(SMALL | {"n0": 512})
    wanted = expected(args, w)
    other, others = problem(SIZES["a step more than whole laps"])
    other["x"][...], other["attended"][...] = 0, 0
    first = None
    for _ in range(6):
        x, attended = args["x"].copy(), args["attended"].copy()
        over = args | {"x": x, "sum": x, "attended": attended, "y0": attended}
        made = {name: value.copy() for name, value in run(half_library, over).items()}
        require_near(made, wanted)
        for name, value in (first or made).items():
            np.testing.assert_array_equal(value.view(np.uint16), made[name].view(np.uint16))
        first = made
        require_near(run(half_library, dict(other)), expected(other, others))


def test_a_row_without_a_slot_leaves_no_value(half_library: "GpuLibrary") -> None:
    args, _ = problem(SMALL, slot=-1)
    assert not run(half_library, args)["table"].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["x", "attended"])
def test_a_value_that_is_not_finite_stays_so(
    half_library: "GpuLibrary", name: str, bad: float
) -> None:
    args, _ = problem(SMALL)
    args[name][0, 5] = bad
    made = run(half_library, args)
    assert not np.isfinite(made["y0"]).any()
    assert not np.isfinite(made["table"][3].astype(np.float32)).any()
