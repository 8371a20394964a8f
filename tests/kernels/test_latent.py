"""Attention over latents, over buffers, behind a gate: bit for bit the plain one."""

import numpy as np
import pytest

from kernels.harness import Library, poison, windowed
from kernels.reference import Array, attention
from kernels.test_attention import Case, problem, run
from kernels.test_parts import assert_forms

CASES = [
    Case(4, 2, 16, 16, tuple(range(60, 72)), window=7),
    Case(6, 1, 24, 16, (3, 77, 0, 130), stride=1, softcap=2.0),
    Case(4, 4, 20, 24, (129, 130), page=5),
]
cases = pytest.mark.parametrize("case", CASES, ids=["a window", "a batch", "odd widths"])


@cases
def test_a_gate_multiplies_the_result(library: Library, case: Case) -> None:
    p = problem(case)
    rows, width = len(case.positions), case.heads * case.dv
    rng = np.random.default_rng(1)
    gate = windowed(rng, rows, units=case.heads, width=case.dv, pitch=2 * case.dv, offset=case.dv)
    plain = run(library, p.args).reshape(rows, width)
    share, expected = poison(plain.shape, np.float32), poison(plain.shape, np.float32)
    library.call("sigmoid", x=gate.dense, y=share, count=share.size)
    library.call("mul", a=plain, b=share, y=expected, count=share.size)
    y = poison(plain.shape, np.float32)
    library.call("attention_gate", **p.args, **gate.args("gate"), y=y)
    np.testing.assert_array_equal(y, expected)
    if case.stride:
        library.call("attention_gate_pieces", **p.args, **gate.args("gate"), y=y)
        np.testing.assert_array_equal(y, expected)
    if case.heads // case.groups * case.dv % 32 == 0:
        assert_forms(library, "attention_gate", {**p.args, **gate.args("gate")}, expected)


LATENT = [
    Case(4, 1, 40, 32, tuple(range(120, 133))),
    Case(16, 1, 576, 512, (9, 70), scale=0.04),
    Case(2, 1, 16, 10, (3, 77, 0), stride=1, page=5),
    Case(3, 1, 36, 18, (300,), page=5),
]


def latent(case: Case) -> tuple[dict, Array]:
    """A problem whose values are the first of its keys."""
    p = problem(case)
    keys = p.args["k"].reshape(-1, case.groups, case.dk)
    p.args["v"] = np.ascontiguousarray(keys[..., : case.dv])
    return p.args, keys


@pytest.mark.parametrize("case", LATENT)
def test_values_in_keys_and_queries_in_two_change_no_bit(library: Library, case: Case) -> None:
    args, _ = latent(case)
    plain = run(library, args).reshape(len(case.positions), -1)
    args.pop("v")
    made = poison(plain.shape, np.float32)
    library.call("attention_in", **args, y=made)
    np.testing.assert_array_equal(made, plain)
    own = case.dk - 4
    q = args.pop("q")
    split = {"q": q[..., :own].copy(), "qt": q[..., own:].copy(), "own": own}
    made = poison(plain.shape, np.float32)
    library.call("attention_in_split", **args, **split, y=made)
    np.testing.assert_array_equal(made, plain)
    if len(plain) == 1 or case.stride:
        for entry, queries in (
            ("attention_in_pieces", {"q": q}),
            ("attention_in_split_pieces", split),
        ):
            made = poison(plain.shape, np.float32)
            library.call(entry, **args, **queries, y=made)
            np.testing.assert_array_equal(made, plain)
    if case.heads * case.dv % 32 == 0:
        assert_forms(library, "attention_in", {**args, "q": q}, plain)
        assert_forms(library, "attention_in_split", args | split, plain)


def test_each_group_has_values_in_its_own_keys(library: Library) -> None:
    case = Case(4, 2, 16, 12, (40, 41))
    args, keys = latent(case)
    args.pop("v")
    y = poison((2, 4, 12), np.float32)
    library.call("attention_in", **args, y=y)
    slots = args["pages"][0]
    at = np.arange(42)
    own = keys[slots[at // case.page] * case.page + at % case.page]
    for row, position in enumerate(case.positions):
        exact = attention(args["q"][row], own, own[..., :12], position, case.scale)
        np.testing.assert_allclose(y[row], exact, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    "case", [Case(4, 4, 24, 16, tuple(range(60, 73))), Case(4, 2, 20, 32, (5, 130), window=9)]
)
def test_flat_keys_and_values_change_no_bit(library: Library, case: Case) -> None:
    """Keys and values side by side in one buffer; or the end of every key in a table of its own."""
    p = problem(case)
    rows, own = len(case.positions), case.dk - 8
    tail = np.random.default_rng(2).standard_normal((len(p.args["k"]), 8)).astype(np.float32)
    p.args["k"].reshape(-1, case.groups, case.dk)[..., own:] = tail[:, None]
    plain = run(library, p.args).reshape(rows, -1)
    at = np.arange(max(case.positions) + 1)
    slot = p.args["pages"][0][at // case.page] * case.page + at % case.page
    k, v = (p.args[name][slot].reshape(len(at), case.groups, -1) for name in "kv")
    args = {name: value for name, value in p.args.items() if name not in ("k", "v", "stride")}
    pages = {name: args.pop(name) for name in ("pages", "page", "pages_width")}

    side = np.concatenate([k, v], axis=2)
    lies = {"k_row": side[0].size, "k_unit": side.shape[2]} | {"v_row": side[0].size}
    lies |= {"v_unit": side.shape[2], "k": side, "v": side.reshape(-1)[case.dk :].copy()}
    assert_all(library, "attention_flat", args | lies, plain)

    heads = k[..., :own].copy()
    lies |= {"k": heads, "k_row": heads[0].size, "k_unit": own}
    wide = np.full((len(tail), 21), np.nan, np.float32)
    wide[:, 9:17] = tail
    kept = {"kt": wide, "own": own, "pitch": 21, "column": 9, **pages}
    assert_all(library, "attention_flat_split", args | lies | kept, plain)


def assert_all(library: Library, entry: str, args: dict, plain: Array) -> None:
    y = poison(plain.shape, np.float32)
    library.call(entry, **args, y=y)
    np.testing.assert_array_equal(y, plain)
    if args["heads"] // args["groups"] * args["dv"] % 32 == 0:
        assert_forms(library, entry, args, plain)


def test_gather_lays_columns_of_a_sequence_one_after_another(library: Library) -> None:
    rng = np.random.default_rng(4)
    table = rng.standard_normal((6 * 5, 80)).astype(np.float32)
    pages = np.array([[4, 0, 5, 2]], np.int32)
    at = np.arange(18)
    expected = table[pages[0][at // 5] * 5 + at % 5, 7:71]
    sizes = {"rows": 18, "width": 64, "page": 5, "pitch": 80, "column": 7}
    assert_forms(library, "gather", {"table": table, "pages": pages, **sizes}, expected)
