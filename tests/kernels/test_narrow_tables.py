"""Tables of bfloat16: what is put there is rounded once, what is read there is what it is."""

from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from bedstone.spec.dtype import FormatName
from bedstone.target.toolchain import find_compiler
from kernels.harness import AVAILABLE, Library, poison, windowed
from kernels.reference import Array, weights
from kernels.test_attention import PIECES, Case, problem
from kernels.test_glu import quantized_outputs
from kernels.test_linear import K, activations

BF16 = ml_dtypes.bfloat16


@pytest.fixture(params=AVAILABLE)
def both(
    request: pytest.FixtureRequest, libraries: dict[str, Library], modules: Path
) -> tuple[Library, Library]:
    """Kernels of a set for tables of float32, and of bfloat16."""
    wide = libraries[request.param]
    narrow = libraries.setdefault(
        f"{request.param} bf16",
        Library(request.param, find_compiler(), modules, {}, tables="bf16"),
    )
    return wide, narrow


def assert_reads_alike(
    both: tuple[Library, Library], name: str, tables: dict[str, Array], args: dict, shape: tuple
) -> None:
    """Values that bfloat16 holds are the same ones in either table."""
    wide, narrow = both
    made = []
    for library, dtype in ((wide, np.float32), (narrow, BF16)):
        y = poison(shape, np.float32)
        held = {state: table.astype(BF16).astype(dtype) for state, table in tables.items()}
        library.call(name, **args, **held, y=y)
        made.append(y)
    np.testing.assert_array_equal(made[1], made[0])


def apart(args: dict, *states: str) -> tuple[dict[str, Array], dict]:
    return {n: args[n] for n in states}, {n: v for n, v in args.items() if n not in states}


ATTENDED = PIECES | {
    "a prompt": Case(6, 2, 64, 64, tuple(range(70))),
    "a later piece of it": Case(9, 3, 64, 64, tuple(range(190, 203))),
    "many heads to a group, over pieces": Case(14, 1, 16, 32, (129, 130), page=64),
    "odd widths of a prompt": Case(4, 2, 20, 36, (5, 6, 7, 8, 9), page=5),
    "windows that do not meet": Case(2, 2, 16, 16, (5, 400, 401), window=4),
}


@pytest.mark.parametrize("case", ATTENDED.values(), ids=ATTENDED)
def test_attention_reads_what_a_table_holds(both: tuple[Library, Library], case: Case) -> None:
    p = problem(case)
    tables, args = apart(p.args, "k", "v")
    names = ["attention", "attention_r"]
    if case.stride or len(case.positions) == 1:
        names += ["attention_pieces", "attention_r_pieces"]
    for name in names:
        assert_reads_alike(both, name, tables, args, p.expected.shape)


@pytest.mark.parametrize("form", ["", "_r"])
def test_latents_and_gates_read_it_too(both: tuple[Library, Library], form: str) -> None:
    case = Case(16, 1, 96, 64, (9, 70, 200), scale=0.1, stride=1)
    p = problem(case)
    tables, args = apart(p.args, "k", "v")
    gate = windowed(np.random.default_rng(1), 3, units=16, width=64, pitch=128, offset=64)
    for ending in ("", "_pieces"):
        gated = args | gate.args("gate")
        assert_reads_alike(both, f"attention_gate{form}{ending}", tables, gated, p.expected.shape)
        key = {"k": tables["k"]}
        assert_reads_alike(both, f"attention_in{form}{ending}", key, args, p.expected.shape)
        q = args["q"]
        split = {**args, "q": q[..., :64].copy(), "qt": q[..., 64:].copy(), "own": 64}
        name = f"attention_in_split{form}{ending}"
        assert_reads_alike(both, name, key, split, p.expected.shape)


@pytest.mark.parametrize("form", ["", "_r"])
@pytest.mark.parametrize("rows", [2, 40])
def test_the_rest_of_a_key_lies_in_a_table(
    both: tuple[Library, Library], form: str, rows: int
) -> None:
    rng = np.random.default_rng(rows)
    k, v = (rng.standard_normal((150, 4, d)).astype(np.float32) for d in (16, 32))
    sizes = {
        "rows": rows, "heads": 4, "groups": 4, "dk": 24, "dv": 32, "page": 16, "pages_width": 12,
        "scale": 0.3, "window": 0, "softcap": 0.0, "k_row": 64, "k_unit": 16, "v_row": 128,
        "v_unit": 32, "own": 16, "pitch": 21, "column": 9,
    }  # fmt: skip
    args = {
        "q": rng.standard_normal((rows, 4, 24)).astype(np.float32), "k": k, "v": v,
        "position": np.arange(150 - rows, 150, dtype=np.int32),
        "pages": rng.permutation(12).astype(np.int32).reshape(1, 12), **sizes,
    }  # fmt: skip
    kept = {"kt": rng.standard_normal((12 * 16, 21)).astype(np.float32)}
    assert_reads_alike(both, f"attention_flat_split{form}", kept, args, (rows, 4, 32))


def test_gather_reads_it_in_every_form(both: tuple[Library, Library]) -> None:
    table = {"table": np.random.default_rng(4).standard_normal((30, 80)).astype(np.float32)}
    sizes = {"rows": 18, "width": 64, "page": 5, "pitch": 80, "column": 7}
    args = {"pages": np.array([[4, 0, 5, 2]], np.int32), **sizes}
    assert_reads_alike(both, "gather", table, args, (18, 64))
    coded = []
    for library, dtype in zip(both, (np.float32, BF16), strict=True):
        codes = quantized_outputs(18, 64)
        held = table["table"].astype(BF16).astype(dtype)
        library.call("gather_q", **args, table=held, **codes)
        coded.append(codes)
    for part in coded[0]:
        np.testing.assert_array_equal(coded[1][part], coded[0][part])


def assert_puts_rounded(
    both: tuple[Library, Library], name: str, args: dict, pitch: int, rows: int = 5
) -> None:
    """A narrow table gets what a wide one gets, to the nearest; the rest of it stays."""
    slot = np.random.default_rng(pitch).permutation(9)[:rows].astype(np.int32)
    slot[1] = -1
    tables = [np.full((9, pitch), 7, dtype) for dtype in (np.float32, BF16)]
    for library, table in zip(both, tables, strict=True):
        outs = {n: poison(v.shape, v.dtype) for n, v in args.items() if n.startswith("y")}
        library.call(name, **args | outs, table=table, slot=slot)
    wide, narrow = tables
    assert (wide != 7).any()
    np.testing.assert_array_equal(narrow.view(np.uint16), wide.astype(BF16).view(np.uint16))


def values(rows: int, width: int) -> Array:
    x = np.random.default_rng(width).standard_normal((rows, width)).astype(np.float32)
    x[0, :6] = [np.inf, -np.inf, 0, 1e-39, 3.4e38, 1 + 2**-8]
    return x


@pytest.mark.parametrize("width", [6, 37, 64])
def test_rows_are_set_to_the_nearest(both: tuple[Library, Library], width: int) -> None:
    args = {"x": values(5, width), "rows": 5, "width": width}
    assert_puts_rounded(both, "set_rows", args, width)
    columns = {"pitch": width + 9, "column": 4}
    assert_puts_rounded(both, "set_cols", args | columns, width + 9)


def test_what_is_no_number_stays_none(both: tuple[Library, Library]) -> None:
    x = np.array([[np.nan, -np.nan, 1]], np.float32)
    x.view(np.uint32)[0, 0] = 0x7F800001
    table = np.zeros((1, 3), BF16)
    slot = np.zeros(1, np.int32)
    both[1].call("set_rows", x=x, slot=slot, table=table, rows=1, width=3)
    np.testing.assert_array_equal(np.isnan(table.astype(np.float32)), [[True, True, False]])


def rotations() -> Iterator[tuple[str, dict, int]]:
    """Entries that turn heads, or norm them, and put them in a table; and its pitch."""
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, 6, (5, 8))
    where = {
        "position": np.arange(5, dtype=np.int32), "cos": np.cos(angle).astype(np.float32),
        "sin": np.sin(angle).astype(np.float32), "rows": 5, "head_dim": 20, "rot": 16, "kind": 0,
    }  # fmt: skip
    norm = {"eps": 1e-5, "plus_one": 0}
    x, w = rng.standard_normal((5, 60)).astype(np.float32), np.ones(20, np.float32)
    columns = {"pitch": 71, "column": 4}
    yield "rope_rows", {**where, "x": x, "heads": 3}, 60
    yield "rope_n_cols", {**where, **norm, **columns, "x": x, "w": w, "heads": 3}, 71
    two = {"x0": x, "x1": x, "y0": x, "heads0": 3, "heads1": 3}
    yield "rope_parts_rows", {**where, **two}, 60
    yield "rope_parts_n_cols", {**where, **norm, **columns, **two, "w0": w, "w1": w}, 71
    part = windowed(rng, 5, units=3, width=20, pitch=26, offset=3).args("x")
    yield "rope_p_rows", {**where, **part, "heads": 3, "offset": 2}, 60
    units = {"rows": 5, "width": 60, "unit": 20, "w": w, **norm, **columns}
    yield "norm_cols", {**units, "x": x}, 71
    yield "norm_p_cols", {**units, **part}, 71


@pytest.mark.parametrize(
    ("name", "args", "pitch"), [pytest.param(*r, id=r[0]) for r in rotations()]
)
def test_heads_are_put_to_the_nearest(
    both: tuple[Library, Library], name: str, args: dict, pitch: int
) -> None:
    assert_puts_rounded(both, name, args, pitch)


def test_products_are_put_to_the_nearest(both: tuple[Library, Library]) -> None:
    rng = np.random.default_rng(5)
    name: FormatName = "q4_1"
    k, x = K[name], rng.standard_normal((5, K[name])).astype(np.float32)
    carried, _ = activations(x, codes=True)
    w, w0 = (weights(name, n, k, rng)[0] for n in (40, 24))
    bias, bias0 = (rng.standard_normal(n).astype(np.float32) for n in (40, 24))
    one = {**carried, "rows": 5, "k": k, "w": w, "n": 40}
    assert_puts_rounded(both, "linear_q_q4_1_rows", one, 40)
    two = {
        **carried, "rows": 5, "k": k, "w0": w0, "w1": w, "n0": 24, "n1": 40,
        "bias0": bias0, "bias1": bias, "y0": poison((5, 24), np.float32),
    }  # fmt: skip
    assert_puts_rounded(both, "parts2_q_q4_1_b_rows", two, 40)
