"""What a layer does behind its attention, in one launch and in six."""

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bedstone.library.cuda.tail import MATRICES
from bedstone.spec.dtype import FORMATS, FormatName
from kernels.harness import poison
from kernels.reference import Array, weights
from kernels.tail_model import Tail

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

pytestmark = pytest.mark.gpu
formats = pytest.mark.parametrize("name", MATRICES)
SHAPES = {
    "wo": ("width", "inner"), "wg": ("ff", "width"), "wu": ("ff", "width"), "wd": ("width", "ff"),
    "w0": ("n0", "width"), "w1": ("n1", "width"), "w2": ("n2", "width"),
}  # fmt: skip
NEAR = 0.01
"""Of a result's length: coded in eight bits a row is off by a hundredth."""

NUMBERS = {"act": 0, "eps_post": 1e-5, "plus_one_post": 1, "eps": 1e-6, "plus_one": 0}
SIZES = {
    "small": {"inner": 2048, "width": 2048, "ff": 2304, "n0": 300, "n1": 7, "n2": 45},
    "few outputs": {"inner": 2304, "width": 2048, "ff": 2048, "n0": 1, "n1": 1, "n2": 1},
    "rows off sixteen bytes": {
        "inner": 2080, "width": 2112, "ff": 2144, "n0": 150, "n1": 40, "n2": 33,
    },
    "uneven lots and pieces": {
        "inner": 4864, "width": 3328, "ff": 5120, "n0": 133, "n1": 131, "n2": 1,
    },
    "heads narrower than the row": {
        "inner": 2048, "width": 4352, "ff": 2304, "n0": 16, "n1": 17, "n2": 8,
    },
    "long": {"inner": 4096, "width": 2560, "ff": 12288, "n0": 4096, "n1": 1024, "n2": 1024},
    "more outputs than wait at a time": {
        "inner": 2048, "width": 2048, "ff": 132 * 130, "n0": 132 * 260, "n1": 9, "n2": 3,
    },
}  # fmt: skip

CASES = [("q4_k", sizes) for sizes in SIZES] + [
    (name, sizes)
    for name in MATRICES if name != "q4_k"
    for sizes in ("small", "rows off sixteen bytes", "uneven lots and pieces")
]  # fmt: skip


def problem(name: FormatName, sizes: dict[str, int], slot: int = 3) -> dict:
    """The operands of one launch, its results poisoned."""
    return problem_and_model(name, sizes, slot)[0]


def problem_and_model(name: FormatName, sizes: dict[str, int], slot: int = 3) -> tuple[dict, Tail]:
    """The operands of one launch, its results poisoned; and what is to come out."""
    rng = np.random.default_rng(len(name) + sizes["ff"])
    block = FORMATS[name].block
    sizes = {n: -(-v // block) * block if n in ("inner", "width", "ff") else v
             for n, v in sizes.items()}  # fmt: skip
    each = {n: weights(name, sizes[rows], sizes[k], rng) for n, (rows, k) in SHAPES.items()}
    made = {n: stored for n, (stored, _) in each.items()}
    row = lambda n: rng.standard_normal((1, sizes[n])).astype(np.float32)  # noqa: E731
    args = {
        **made, **sizes, **NUMBERS,
        "attended": row("inner"), "x": row("width"), "w_post": row("width")[0],
        "w_in": row("width")[0], "sum": poison((1, sizes["width"]), np.float32),
        "y0": poison((1, sizes["n0"]), np.float32), "y1": poison((1, sizes["n1"]), np.float32),
        "slot": np.array([slot], np.int32),
    }  # fmt: skip
    held = {n: args[n] for n in ("attended", "x", "w_post", "w_in")}
    numbers = {n: np.float64(v) for n, v in NUMBERS.items()}
    return args, Tail({n: values for n, (_, values) in each.items()}, held | numbers)


def table_of(library: "GpuLibrary", args: dict) -> Array:
    from kernels.gpu_library import CACHES

    return np.zeros((8, args["n2"]), CACHES[library.tables])


def together(library: "GpuLibrary", name: FormatName, args: dict, table: Array) -> dict:
    library.call(f"tail_parts3_{name}_rows", **args, table=table)
    return {"sum": args["sum"], "y0": args["y0"], "y1": args["y1"], "table": table}


def with_a_head(library: "GpuLibrary", name: FormatName, args: dict) -> dict:
    """What a launch makes that ends in one matrix, which is the first of three here."""
    several = {f"{kind}{i}" for kind in "wyn" for i in range(3)} | {"sum", "slot"}
    left = {n: v for n, v in args.items() if n not in several}
    y = poison((1, args["n0"]), np.float32)
    library.call(f"tail_linear_{name}", **left, w=args["w0"], y=y, n=args["n0"])
    return {"y0": y}


def apart(library: "GpuLibrary", name: FormatName, args: dict, table: Array) -> dict:
    width, ff = args["width"], args["ff"]
    one = {"rows": 1}

    def empty(n: int) -> Array:
        return poison((1, n), np.float32)

    def normed(x: Array, d: Array, w: Array, ending: str) -> tuple[Array, Array]:
        total, y = empty(width), empty(width)
        sizes = {"width": width, "unit": width, "eps": args[f"eps{ending}"]}
        library.call("add_norm", x=x, d=d, w=w, sum=total, y=y, **one, **sizes,
                     plus_one=args[f"plus_one{ending}"])  # fmt: skip
        return total, y

    o, h, d = empty(width), empty(ff), empty(width)
    library.call(f"linear_{name}", x=args["attended"], w=args["wo"], y=o, **one, k=args["inner"],
                 n=width)  # fmt: skip
    mid, m = normed(args["x"], o, args["w_post"], "_post")
    library.call(f"glu_{name}", x=m, wg=args["wg"], wu=args["wu"], y=h, **one, k=width, n=ff,
                 act=args["act"])  # fmt: skip
    library.call(f"linear_{name}", x=h, w=args["wd"], y=d, **one, k=ff, n=width)
    total, xn = normed(mid, d, args["w_in"], "")
    made = {"y0": empty(args["n0"]), "y1": empty(args["n1"])}
    given = {n: args[n] for n in ("w0", "w1", "w2", "n0", "n1", "n2", "slot")}
    library.call(f"parts3_{name}_rows", x=xn, **given, **made, table=table, **one, k=width)
    return {"sum": total, **made, "table": table}


def require_the_same(made: dict, expected: dict) -> None:
    for name, values in expected.items():
        np.testing.assert_array_equal(made[name].view(np.uint16), values.view(np.uint16), name)


def flat(made: dict, slot: int = 3) -> dict[str, Array]:
    """Results as rows of float64, the table's newest among them."""
    rows = {"y2" if n == "table" else n: v[slot if n == "table" else 0] for n, v in made.items()}
    return {name: row.astype(np.float64) for name, row in rows.items()}


def off(made: dict[str, Array], expected: dict[str, Array]) -> dict[str, float]:
    """How far each result is off, of its length."""
    return {n: float(np.linalg.norm(made[n] - v) / np.linalg.norm(v)) for n, v in expected.items()}


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_a_launch_multiplies_the_codes_that_blocks_tell(
    half_library: "GpuLibrary", name: FormatName, sizes: str
) -> None:
    """A code that is rounded the other way, as one in thousands is, costs less than a scale."""
    args, model = problem_and_model(name, SIZES[sizes])
    made = flat(together(half_library, name, args, table_of(half_library, args)))
    assert max(off(made, model.results()).values()) < NEAR


@formats
@pytest.mark.parametrize("sizes", ["small", "few outputs", "more outputs than wait at a time"])
def test_a_head_has_the_bits_of_a_layers_first_product(
    half_library: "GpuLibrary", name: FormatName, sizes: str
) -> None:
    args = problem(name, SIZES[sizes])
    table = table_of(half_library, args)
    made = {n: v.copy() for n, v in together(half_library, name, args, table).items()}
    head = with_a_head(half_library, name, args)
    require_the_same(head, {n: made[n] for n in head})


@formats
def test_one_launch_is_near_six(half_library: "GpuLibrary", name: FormatName) -> None:
    """Six launches code what they have normed; here the norm's factor comes afterwards."""
    args = problem(name, SIZES["small"])
    expected = flat(apart(half_library, name, args, table_of(half_library, args)))
    made = flat(together(half_library, name, args, table_of(half_library, args)))
    assert max(off(made, expected).values()) < NEAR


def test_the_sum_may_lie_over_what_it_adds_to_and_results_over_what_was_attended(
    half_library: "GpuLibrary",
) -> None:
    args = problem("q4_k", SIZES["small"] | {"n0": 2048})
    table = table_of(half_library, args)
    expected = {n: v.copy() for n, v in together(half_library, "q4_k", args, table).items()}
    for _ in range(20):
        x, attended = args["x"].copy(), args["attended"].copy()
        over = args | {"x": x, "sum": x, "attended": attended, "y0": attended}
        require_the_same(
            together(half_library, "q4_k", over, table_of(half_library, args)), expected
        )


def test_a_row_without_a_slot_leaves_no_value(half_library: "GpuLibrary") -> None:
    args = problem("q4_k", SIZES["small"], slot=-1)
    assert not together(half_library, "q4_k", args, table_of(half_library, args))["table"].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_stays_so(half_library: "GpuLibrary", bad: float) -> None:
    args = problem("q4_k", SIZES["small"])
    args["x"][0, 5] = bad
    made = together(half_library, "q4_k", args, table_of(half_library, args))
    assert not np.isfinite(made["y0"]).any()
    assert not np.isfinite(made["table"][3].astype(np.float32)).any()
