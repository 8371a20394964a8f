"""attention: paged, grouped, windowed, capped; a row's bits do not depend on its neighbours."""

from dataclasses import dataclass

import numpy as np
import pytest

from kernels.harness import Library, poison
from kernels.reference import Array, attention
from kernels.test_glu import quantized_outputs


@dataclass
class Case:
    heads: int
    groups: int
    dk: int
    dv: int
    positions: tuple[int, ...]
    page: int = 16
    window: int = 0
    softcap: float = 0.0
    stride: int = 0
    scale: float = 0.3


@dataclass
class Problem:
    args: dict
    expected: Array


def problem(case: Case) -> Problem:
    """Shuffled pages, poisoned wherever no position of a sequence lies."""
    rng = np.random.default_rng([case.heads, case.dk, len(case.positions)])
    rows, sequences = len(case.positions), len(case.positions) if case.stride else 1
    width = -(-(max(case.positions) + 1) // case.page) + 1
    pages = rng.permutation(sequences * width).reshape(sequences, width).astype(np.int32)
    slots = sequences * width * case.page
    q = rng.standard_normal((rows, case.heads, case.dk)).astype(np.float32)
    tables = [poison((slots, case.groups, d), np.float32) for d in (case.dk, case.dv)]
    filled = []
    for s in range(sequences):
        last = case.positions[s] if case.stride else max(case.positions)
        at = np.arange(last + 1)
        slot = pages[s, at // case.page] * case.page + at % case.page
        filled.append(slot)
        for t in tables:
            t[slot] = rng.standard_normal((last + 1, *t.shape[1:]))
    expected = []
    for r, position in enumerate(case.positions):
        k, v = (t[filled[r * case.stride]] for t in tables)
        expected.append(
            attention(q[r], k, v, position, case.scale, window=case.window, softcap=case.softcap)
        )
    args = {
        "q": q, "k": tables[0], "v": tables[1], "pages": pages,
        "position": np.array(case.positions, np.int32), "rows": rows, "heads": case.heads,
        "groups": case.groups, "dk": case.dk, "dv": case.dv, "page": case.page,
        "pages_width": width, "stride": case.stride, "scale": case.scale,
        "window": case.window, "softcap": case.softcap,
    }  # fmt: skip
    return Problem(args, np.array(expected))


def run(library: Library, args: dict) -> Array:
    y = poison((args["rows"], args["heads"], args["dv"]), np.float32)
    library.call("attention", **args, y=y)
    return y


CASES = {
    "one row, one position": Case(3, 1, 8, 8, (0,)),
    "a whole prompt": Case(6, 2, 64, 64, tuple(range(70))),
    "a later piece": Case(9, 3, 64, 64, tuple(range(190, 203))),
    "odd widths": Case(4, 2, 20, 36, (5, 6, 7, 8, 9), page=5),
    "many heads to a group": Case(14, 1, 16, 32, (129, 130), page=64),
    "each head its own keys": Case(4, 4, 32, 96, (63, 64, 65)),
    "a window": Case(4, 2, 16, 16, tuple(range(60, 72)), window=7),
    "a window past a tile": Case(2, 1, 16, 16, (200, 201), window=100),
    "a cap": Case(4, 2, 16, 16, (30, 31), softcap=2.0),
    "a batch": Case(4, 2, 16, 16, (3, 77, 0, 130, 64, 63), stride=1),
    "rows of several blocks": Case(6, 2, 32, 64, tuple(range(100, 175))),
    "rows past a piece": Case(4, 1, 64, 64, tuple(range(120, 140)), window=90),
    "windows that do not meet": Case(2, 2, 16, 16, (5, 400, 401), window=4),
    "large heads": Case(4, 2, 576, 512, (9, 10, 11, 12), scale=0.04),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_attention_is_near_float64_and_each_row_stands_alone(library: Library, case: Case) -> None:
    p = problem(case)
    y = run(library, p.args)
    np.testing.assert_allclose(y, p.expected, rtol=1e-5, atol=2e-6)
    for r in {0, len(case.positions) // 2, len(case.positions) - 1}:
        alone = p.args | {
            "q": p.args["q"][r : r + 1].copy(),
            "position": p.args["position"][r : r + 1].copy(),
            "pages": p.args["pages"][r * case.stride :].copy(),
            "rows": 1,
        }
        np.testing.assert_array_equal(run(library, alone)[0], y[r])


@pytest.mark.parametrize(
    "case", [Case(9, 3, 64, 64, (40, 41, 42, 43, 44)), Case(8, 2, 16, 40, (70,))]
)
def test_the_quantized_forms_are_quantize_of_the_plain_one(library: Library, case: Case) -> None:
    p = problem(case)
    y = run(library, p.args)
    rows, width = len(y), y[0].size
    q, fq, apart = (quantized_outputs(rows, width) for _ in range(3))
    again = poison(y.shape, np.float32)
    library.call("attention_q", **p.args, **q)
    library.call("attention_fq", **p.args, **fq, y=again)
    library.call("quantize", x=y.reshape(rows, width), **apart, rows=rows, width=width)
    np.testing.assert_array_equal(again, y)
    for part in apart:
        np.testing.assert_array_equal(q[part], apart[part])
        np.testing.assert_array_equal(fq[part], apart[part])


PIECES = {
    "one piece": Case(9, 3, 64, 64, (100,)),
    "few pieces": Case(9, 3, 64, 64, (300,)),
    "the last position of a piece": Case(4, 2, 64, 64, (255,), page=32),
    "the first of a piece": Case(4, 2, 64, 64, (256,), page=32),
    "more pieces than blocks": Case(2, 1, 16, 16, (32 * 128 + 40 * 128 + 7,), page=32),
    "a window": Case(4, 2, 32, 32, (700,), window=300, page=7),
    "a window in one piece": Case(4, 2, 32, 32, (700,), window=20),
    "a cap": Case(4, 2, 32, 16, (1500,), softcap=3.0),
    "odd widths": Case(6, 2, 20, 36, (777,), page=5),
    "many heads to a group": Case(40, 2, 32, 16, (400,)),
    "more heads than fit at once": Case(130, 1, 64, 256, (200,)),
    "a batch": Case(6, 3, 32, 32, (3, 1277, 0, 130, 128, 127, 640), stride=1, page=32),
}


@pytest.mark.parametrize("case", PIECES.values(), ids=PIECES)
def test_pieces_apart_are_pieces_one_after_another(library: Library, case: Case) -> None:
    p = problem(case)
    whole = run(library, p.args)
    np.testing.assert_allclose(whole, p.expected, rtol=1e-5, atol=2e-6)
    y = poison(whole.shape, np.float32)
    library.call("attention_pieces", **p.args, y=y)
    np.testing.assert_array_equal(y, whole)
    if case.heads // case.groups * case.dv % 32 == 0:
        rows, width = len(y), y[0].size
        q, apart = (quantized_outputs(rows, width) for _ in range(2))
        library.call("attention_q_pieces", **p.args, **q)
        library.call("quantize", x=y.reshape(rows, width), **apart, rows=rows, width=width)
        for part in apart:
            np.testing.assert_array_equal(q[part], apart[part])


def test_a_batch_in_pieces_has_rows_without_a_position(library: Library) -> None:
    p = problem(Case(4, 2, 16, 16, (300, 5, 200), stride=1))
    args = p.args | {"position": np.array([300, -1, 200], np.int32)}
    y = poison(p.expected.shape, np.float32)
    library.call("attention_pieces", **args, y=y)
    np.testing.assert_allclose(y[[0, 2]], p.expected[[0, 2]], rtol=1e-5, atol=2e-6)
    np.testing.assert_array_equal(y[1], 0)


def test_a_row_without_a_position_is_zero(library: Library) -> None:
    p = problem(Case(2, 1, 8, 8, (4, 5)))
    y = run(library, p.args | {"position": np.array([4, -1], np.int32)})
    np.testing.assert_allclose(y[0], p.expected[0], rtol=1e-5, atol=2e-6)
    np.testing.assert_array_equal(y[1], 0)


def scored(library: Library, scores: list[float], v: list[float], **args: float) -> float:
    """Attention of one row over tokens whose scores and values are given."""
    n = len(scores)
    base = {
        "q": np.ones((1, 1, 1), np.float32), "k": np.array(scores, np.float32),
        "v": np.array(v, np.float32), "position": np.array([n - 1], np.int32),
        "pages": np.zeros((1, 1), np.int32), "rows": 1, "heads": 1, "groups": 1, "dk": 1, "dv": 1,
        "page": n, "pages_width": 1, "stride": 0, "scale": 1.0, "window": 0, "softcap": 0.0,
    }  # fmt: skip
    return float(run(library, base | args)[0, 0, 0])


def test_c17_the_cap_applies_before_the_softmax(library: Library) -> None:
    np.testing.assert_allclose(
        scored(library, [100, 90], [1, 0], softcap=50.0), 0.70288591, rtol=2e-6
    )
    np.testing.assert_allclose(scored(library, [100, 90], [1, 0]), 0.99995460, rtol=2e-6)


def test_c18_a_cap_of_zero_is_none(library: Library) -> None:
    np.testing.assert_allclose(scored(library, [1, 2], [1, 3], softcap=0.0), 2.46211716, rtol=2e-6)


def test_c21_a_window_counts_the_token_itself(library: Library) -> None:
    assert scored(library, [0] * 8, list(range(8)), window=4) == 5.5


@pytest.mark.parametrize(("heads", "groups"), [(40, 8), (24, 4), (28, 4), (64, 4), (6, 2), (71, 1)])
def test_c26_every_ratio_of_heads_to_groups(library: Library, heads: int, groups: int) -> None:
    p = problem(Case(heads, groups, 4, 4, (0,)))
    np.testing.assert_allclose(run(library, p.args), p.expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_that_is_not_finite_stays_so(library: Library, bad: float) -> None:
    assert not np.isfinite(scored(library, [1, bad, 2], [1, 2, 3]))
