"""sample, sample_carried: a token of each row of logits, as its settings and edits say."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bedstone.oracle.draw import Wish, draw, logprobs, philox, scores, shares, uniform
from kernels.harness import Library, poison

MOST, EDITS = 20, 8
LEFT_OUT = -np.finfo(np.float32).max
TELLS = ("scores", "logprob", "top_token", "top_logprob")


def words(vocab: int, wish: Wish) -> np.ndarray:
    bits = np.zeros(-(-vocab // 32) * 32, np.uint8)
    bits[list(wish.allowed or ())] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def edit_rows(wishes: Sequence[Wish]) -> dict[str, np.ndarray]:
    token, scale, add = (poison((len(wishes), EDITS), kind) for kind in (np.int32, "f4", "f4"))
    for row, wish in enumerate(wishes):
        for at, edit in enumerate(wish.edits):
            token[row, at], scale[row, at], add[row, at] = edit
    return {"edit_token": token, "edit_scale": scale, "edit_add": add}


def settings(wishes: Sequence[Wish]) -> dict[str, np.ndarray]:
    seeds = [np.uint64(w.seed % 2**64).astype(np.int64) for w in wishes]
    return {
        "temperature": np.array([w.temperature for w in wishes], np.float32),
        "top_k": np.array([w.top_k for w in wishes], np.int32),
        "top_p": np.array([w.top_p for w in wishes], np.float32),
        "min_p": np.array([w.min_p for w in wishes], np.float32),
        "seed": np.array(seeds, np.int64),
    }


def sample(
    library: Library, logits: np.ndarray, wishes: Sequence[Wish], position: Sequence[int]
) -> dict[str, np.ndarray]:
    """All that is left of rows of logits; a step of one sequence may have more positions."""
    rows, vocab = logits.shape
    given = settings(wishes)
    outs: dict[str, Any] = {f"to_{name}": poison((rows,), v.dtype) for name, v in given.items()}
    outs |= {"drawn": poison((rows,), np.int32), "scores": poison((rows, vocab), np.float32)}
    outs |= {"logprob": poison((rows,), np.float32), "top_token": poison((rows, MOST), np.int32)}
    outs |= {"top_logprob": poison((rows, MOST), np.float32)}
    library.call(
        "sample" if rows == 1 else "sample_rows", logits=logits,
        position=np.array(position, np.int32), **given, **edit_rows(wishes),
        edits=np.array([len(w.edits) for w in wishes], np.int32),
        restricted=np.array([w.allowed is not None for w in wishes], np.int32),
        allowed=np.stack([words(vocab, w) for w in wishes]),
        report=np.array([w.report for w in wishes], np.int32), **outs,
        rows=len(position), vocab=vocab, most_edits=EDITS, most=MOST,
    )  # fmt: skip
    for name, value in given.items():
        assert outs[f"to_{name}"].tobytes() == value.tobytes()
    return outs


def carried(
    library: Library, logits: np.ndarray, wishes: Sequence[Wish], position: Sequence[int]
) -> np.ndarray:
    drawn = poison((len(logits),), np.int32)
    library.call(
        "sample_carried" if len(logits) == 1 else "sample_carried_rows", logits=logits,
        position=np.array(position, np.int32), **settings(wishes),
        drawn=drawn, rows=len(position), vocab=logits.shape[1],
    )  # fmt: skip
    return drawn


def draws(library: Library, row: Sequence[float], wish: Wish, count: int) -> np.ndarray:
    """How often each token comes in `count` draws, of as many positions."""
    logits = np.tile(np.array(row, np.float32), (count, 1))
    position = np.arange(count)
    drawn = carried(library, logits, [wish] * count, position)
    return np.bincount(drawn, minlength=len(row))


def likely(counts: np.ndarray, share: np.ndarray) -> bool:
    """Whether such counts come of these shares in all but one of a million cases: chi-squared.

    Tokens that should come fewer than five times count as one.
    """
    expected = share * counts.sum()
    if counts[share == 0].any():
        return False
    rare = expected < 5
    seen = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], max(expected[rare].sum(), 1.0))
    distance = ((seen - wanted) ** 2 / wanted).sum()
    # the quantile by Wilson and Hilferty
    free = max(len(seen) - 1, 1)
    return bool(distance < free * (1 - 2 / (9 * free) + 4.753 * np.sqrt(2 / (9 * free))) ** 3)


def test_the_random_numbers_are_philox_as_published() -> None:
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    every = [0xFFFFFFFF] * 4
    assert philox(every, every[:2]) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


WISHES: dict[str, Wish] = {
    "greedy": Wish(),
    "plain": Wish(1.0),
    "cold": Wish(0.3),
    "hot": Wish(3.0),
    "top_k": Wish(1.0, top_k=5),
    "top_k of many": Wish(2.0, top_k=1500),
    "top_p": Wish(1.0, top_p=0.9),
    "top_p of little": Wish(1.0, top_p=0.01),
    "top_p, hot": Wish(5.0, top_p=0.5),
    "min_p": Wish(1.0, min_p=0.05),
    "all": Wish(0.8, top_k=40, top_p=0.95, min_p=0.02),
    "edited": Wish(1.0, top_p=0.8, edits=[(0, 2.0, 3.0), (3, 1.5, 9.0), (60, 0.5, -2.0)]),
    "edited, greedy": Wish(edits=[(1, 1.0, 30.0), (2, 1.0, 29.0)]),
    "restricted": Wish(1.0, allowed=[0, 2, 5, 31, 32, 33, 60]),
    "restricted, greedy": Wish(allowed=[7]),
    "restricted, top_k": Wish(1.5, top_k=40, allowed=list(range(20))),
    "restricted, edited": Wish(0.9, top_p=0.9, edits=[(5, 2.0, 4.0)], allowed=range(3, 50)),
    "restricted to one": Wish(2.0, allowed=[42]),
    "top_k of one": Wish(1.0, top_k=1),
    "all but frozen": Wish(1e-3),
    "all but even": Wish(1e3),
}  # fmt: skip


@pytest.mark.parametrize("vocab", [61, 5000])
@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES.keys())
def test_a_token_is_the_models(library: Library, wish: Wish, vocab: int) -> None:
    rng = np.random.default_rng(vocab)
    rows = 6
    logits = (rng.standard_normal((rows, vocab)) * 4).astype(np.float32)
    wishes = [replace(wish, seed=int(rng.integers(2**63)) * 2 + 1, report=3) for _ in range(rows)]
    position = rng.integers(0, 4000, rows)
    made = sample(library, logits, wishes, position)
    for row, (one, at) in enumerate(zip(wishes, position, strict=True)):
        wanted, margin = draw(logits[row], one, int(at) + 1)
        assert margin < 1e-6 or made["drawn"][row] == wanted
        told = logprobs(logits[row])
        order = np.lexsort((np.arange(vocab), -logits[row]))[:3]
        assert made["top_token"][row, :3].tolist() == order.tolist()
        np.testing.assert_allclose(made["top_logprob"][row, :3], told[order], atol=2e-6)
        np.testing.assert_allclose(made["logprob"][row], told[made["drawn"][row]], atol=2e-6)
        assert np.isnan(made["top_logprob"][row, 3:]).all()
        if one.edits or one.allowed is not None:
            np.testing.assert_allclose(
                made["scores"][row], np.maximum(scores(logits[row], one), LEFT_OUT), rtol=1e-6
            )
        else:
            assert np.isnan(made["scores"][row]).all()


def test_what_is_not_asked_for_is_not_written(library: Library) -> None:
    made = sample(library, np.ones((1, 700), np.float32), [Wish(1.0)], [4])
    assert all((made[name].view(np.uint8) == 0xFF).all() for name in TELLS)


@pytest.mark.parametrize("wish", [Wish(), Wish(1.0), Wish(0.7, top_k=3, top_p=0.9, min_p=0.1)])
def test_a_chain_draws_what_a_driven_step_does(library: Library, wish: Wish) -> None:
    logits = np.random.default_rng(3).standard_normal((5, 3000)).astype(np.float32)
    wishes = [replace(wish, seed=row) for row in range(5)]
    position = [7, 0, 900, 3, 4]
    one = sample(library, logits, wishes, position)["drawn"]
    assert one.tolist() == carried(library, logits, wishes, position).tolist()


def test_a_row_draws_the_same_whatever_lies_beside_it(library: Library) -> None:
    rng = np.random.default_rng(8)
    logits = (rng.standard_normal((9, 2500)) * 3).astype(np.float32)
    kinds = list(WISHES.values())
    wishes = [replace(kinds[i], seed=i * 977, report=i % 4 - 1) for i in range(9)]
    position = rng.integers(0, 500, 9)
    together = sample(library, logits, wishes, position)
    for row in range(9):
        alone = sample(
            library, logits[row : row + 1], wishes[row : row + 1], position[row : row + 1]
        )
        for name in ("drawn", *TELLS):
            assert together[name][row : row + 1].tobytes() == alone[name].tobytes()


def test_the_row_of_a_chunk_is_its_last(library: Library) -> None:
    logits = np.zeros((1, 400), np.float32)
    for last in (3, 4, 90):
        wish = Wish(1.0, seed=-5)
        made = sample(library, logits, [wish], [0, 1, last])["drawn"][0]
        assert made == draw(logits[0], wish, last + 1)[0]


def test_greedy_is_the_arg_max_and_the_first_of_equals(library: Library) -> None:
    rng = np.random.default_rng(0)
    logits = np.round(rng.standard_normal((20, 3000)) * 4).astype(np.float32)
    for temperature in (0.0, -0.0, -1.0, np.nan):
        drawn = carried(library, logits, [Wish(temperature, seed=9)] * 20, range(20))
        assert drawn.tolist() == logits.argmax(axis=1).tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wish", [Wish(), Wish(1.0), WISHES["restricted"], WISHES["edited"]])
def test_logits_that_are_not_finite_draw_nothing(library: Library, wish: Wish, bad: float) -> None:
    logits = np.zeros((2, 1300), np.float32)
    logits[0, 1203] = bad
    made = sample(library, logits, [replace(wish, report=2)] * 2, [0, 0])
    assert made["drawn"][0] == -1
    assert made["drawn"][1] >= 0
    assert np.isnan(made["logprob"]).tolist() == [True, False]


PROBABILITIES = np.log([0.5, 0.3, 0.15, 0.05]).astype(np.float32)


@pytest.mark.parametrize(
    ("wish", "share"),
    [
        *((Wish(1.0, top_k=k), [0.5, 0.3, 0.15, 0.05]) for k in (0, -1, 4, 5)),
        (Wish(1.0, top_k=2), [0.625, 0.375, 0, 0]),
        (Wish(1.0, top_k=1), [1, 0, 0, 0]),
        (Wish(1.0, top_p=0.75), [0.625, 0.375, 0, 0]),
        (Wish(1.0, top_p=0.0001), [1, 0, 0, 0]),
        (Wish(1.0, top_p=0.0), [1, 0, 0, 0]),
        (Wish(0.0, top_k=3, top_p=0.5, min_p=0.1), [1, 0, 0, 0]),
    ],
)
def test_g29_what_is_kept_at_the_ends_of_top_k_and_top_p(
    library: Library, wish: Wish, share: list[float]
) -> None:
    counts = draws(library, PROBABILITIES.tolist(), replace(wish, seed=29), 1000)
    assert (np.abs(counts / 1000 - share) < 0.06).all()
    assert not counts[np.array(share) == 0].any()


@pytest.mark.parametrize(
    ("temperature", "share"),
    [(1, [0.52631579, 0.31578947, 0.15789474, 0]),
     (2, [0.37899647, 0.2935694, 0.20758492, 0.11984921])],
)  # fmt: skip
def test_g31_min_p_is_of_the_probabilities_after_temperature(
    library: Library, temperature: float, share: list[float]
) -> None:
    wish = Wish(temperature, min_p=0.2, seed=31)
    np.testing.assert_allclose(shares(PROBABILITIES, wish), share, atol=1e-7)
    assert likely(draws(library, PROBABILITIES.tolist(), wish, 4000), np.array(share))


def spread_rows(count: int) -> np.ndarray:
    """Rows [3, count]: no two alike, all alike, and many of each value."""
    normal = np.random.default_rng(1).standard_normal(count)
    return np.stack([normal, np.zeros(count), np.round(2 * normal) / 2]).astype(np.float32)


@cache
def uniforms(seed: int, count: int) -> np.ndarray:
    return np.array([uniform(seed, position) for position in range(1, count + 1)])


DRAWS = 1000


@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES.keys())
def test_tokens_come_as_often_as_their_shares_say(library: Library, wish: Wish) -> None:
    """Each of many draws is the token whose share of [0, 1) its number lies in."""
    # as a kernel has them: 0.8 of forty equals is a little more than thirty-two
    wish = replace(wish, seed=77, top_p=float(np.float32(wish.top_p)))
    rows = spread_rows(61)
    many = len(rows) * DRAWS
    logits, at = np.repeat(rows, DRAWS, axis=0), [*range(DRAWS)] * len(rows)
    plain = not wish.edits and wish.allowed is None
    made = (
        carried(library, logits, [wish] * many, at)
        if plain
        else sample(library, logits, [wish] * many, at)["drawn"]
    ).reshape(-1, DRAWS)
    numbers = uniforms(wish.seed, DRAWS)
    for row, drawn in zip(rows, made, strict=True):
        share = shares(row, wish)
        ends = np.cumsum(share)
        sure = np.abs(ends[:, None] - numbers).min(axis=0) > 1e-6
        assert sure.sum() > 0.99 * DRAWS
        wanted = np.searchsorted(ends, numbers[sure], side="right")
        assert drawn[sure].tolist() == wanted.tolist()
        assert likely(np.bincount(drawn, minlength=len(row)), share)


def any_wish(rng: np.random.Generator, vocab: int) -> Wish:
    """Each setting as it is left alone, or anywhere in its range."""

    def some(plain: float, low: float, high: float) -> float:
        return float(np.float32(rng.uniform(low, high))) if rng.random() < 0.5 else plain

    tokens = rng.permutation(vocab)
    edits = [(int(t), some(1.0, 0.5, 2.0), some(0.0, -5, 5)) for t in tokens[: rng.integers(8)]]
    return Wish(
        float(np.float32(10 ** rng.uniform(-2, 2))),
        top_k=int(some(0, 1, vocab + 3)),
        top_p=some(1.0, 0, 1),
        min_p=some(0.0, 0, 1),
        seed=int(rng.integers(2**63)),
        edits=edits if rng.random() < 0.5 else (),
        allowed=tokens[: rng.integers(1, vocab)].tolist() if rng.random() < 0.5 else None,
    )


def borders(wish: Wish) -> list[Wish]:
    """The same a rounding to either side of where top_p and min_p cut."""
    return [replace(wish, top_p=wish.top_p * e, min_p=wish.min_p * e) for e in (1 - 1e-6, 1 + 1e-6)]


def test_any_mix_of_settings_draws_the_models_token(library: Library) -> None:
    rng = np.random.default_rng(6)
    rows, vocab = 300, 61
    kinds = spread_rows(vocab)
    logits = np.stack([kinds[row % 3][rng.permutation(vocab)] * 4 for row in range(rows)])
    wishes = [any_wish(rng, vocab) for _ in range(rows)]
    position = rng.integers(0, 4000, rows)
    made, sure = sample(library, logits, wishes, position)["drawn"], 0
    for row, (wish, at) in enumerate(zip(wishes, position, strict=True)):
        wanted, margin = draw(logits[row], wish, int(at) + 1)
        less, more = (shares(logits[row], each) for each in borders(wish))
        if margin > 1e-6 and ((less > 0) == (more > 0)).all():
            assert made[row] == wanted, wish
            sure += 1
    assert sure > 0.9 * rows


def test_a_seed_has_64_bits_and_another_is_another_stream(library: Library) -> None:
    row = [0.0] * 512
    seeds = [0, 1, 2**32, 2**63, -1, 2**64 - 2]
    logits = np.zeros((40, len(row)), np.float32)
    made = {
        tuple(carried(library, logits, [Wish(1.0, seed=seed)] * 40, range(40))) for seed in seeds
    }
    assert len(made) == len(seeds)


def test_of_equals_the_first_are_kept(library: Library) -> None:
    row = np.zeros(3000, np.float32)
    row[[5, 700, 1400, 2999]] = 2
    for wish, kept in (
        (Wish(1.0, top_k=2), {5, 700}),
        (Wish(0.01, top_p=0.7), {5, 700, 1400}),
        (Wish(1.0, top_k=6), {5, 700, 1400, 2999, 0, 1}),
        (Wish(1.0, min_p=1.0), {5, 700, 1400, 2999}),
        (Wish(1.0, min_p=7.0), {5, 700, 1400, 2999}),
        (Wish(1.0, top_k=3, top_p=0.5), {5, 700}),
    ):
        counts = draws(library, row.tolist(), replace(wish, seed=4), 300)
        assert set(np.flatnonzero(counts).tolist()) == kept


@pytest.mark.parametrize(
    ("wish", "possible"),
    [
        (Wish(1e-30), {4, 9}),
        (Wish(float(np.float32(1e-42))), {4, 9}),
        (Wish(np.inf), set(range(12))),
        (Wish(3e38), set(range(12))),
        (Wish(1.0, top_p=np.nan, min_p=np.nan), None),
        (Wish(1.0, top_p=7.0, min_p=-3.0, top_k=-(2**31)), None),
        (Wish(1.0, top_k=2**31 - 1), None),
        (Wish(1.0, top_p=-1.0), {4}),
        (Wish(np.inf, allowed=[1, 2]), {1, 2}),
        (Wish(1.0, top_k=5, allowed=[1, 2]), {1, 2}),
        (Wish(1.0, allowed=[]), {4}),
        (Wish(0.0, allowed=[]), {4}),
        (Wish(1.0, edits=[(4, 1.0, -np.inf), (9, 1.0, np.nan)], top_k=1), {0}),
        (Wish(1.0, edits=[(2, 0.0, 0.0)]), {2}),
        (Wish(1.0, edits=[(2, 1.0, np.inf), (3, 1.0, 3e38)]), {2}),
        (Wish(1e-3, edits=[(-1, 1.0, 90.0), (12, 1.0, 90.0), (2**31 - 1, 1.0, 90.0)]), {4, 9}),
    ],
)  # fmt: skip
def test_whatever_is_asked_has_an_answer(
    library: Library, wish: Wish, possible: set[int] | None
) -> None:
    row = np.ones(12, np.float32)
    row[[4, 9]] = 3
    count = 60
    wishes = [replace(wish, seed=seed) for seed in range(count)]
    made = sample(library, np.tile(row, (count, 1)), wishes, [0] * count)
    assert set(made["drawn"].tolist()) <= (set(range(12)) if possible is None else possible)
    if possible is not None:
        assert set(made["drawn"].tolist()) == possible


def test_logits_of_any_size_have_an_answer(library: Library) -> None:
    row = np.array([-3e38, 3e38, 3e38, 0], np.float32)
    counts = draws(library, row.tolist(), Wish(1.0, seed=2), 400)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert counts[1:3].min() > 100
    assert draws(library, [LEFT_OUT] * 3, Wish(1.0), 5).tolist() == [5, 0, 0]


@pytest.mark.parametrize("most", [0, 1, 20, 25])
def test_equals_are_told_in_order(library: Library, most: int) -> None:
    row = np.zeros((1, 1000), np.float32)
    row[0, [999, 3, 500, 501]] = 1
    made = sample(library, row, [Wish(report=most)], [0])
    told = min(most, MOST)
    wanted = [3, 500, 501, 999, 0, 1, 2, *range(4, 30)][:told]
    assert made["top_token"][0, :told].tolist() == wanted
    assert (made["top_token"][0, told:] == -1).all()  # 0xFF bytes: nothing written
    few = sample(library, row[:, :2].copy(), [Wish(report=20)], [0])
    assert few["top_token"][0, :3].tolist() == [0, 1, -1]


def test_g10_log_probabilities_are_of_the_models_own_logits(library: Library) -> None:
    height = 1 / np.sqrt(1 / 16 + 1e-6)
    successor = np.where(np.arange(16) == 5, height, 0).astype(np.float32)[None]
    for temperature in (0.0, 0.5, 1.0):
        made = sample(library, successor, [Wish(temperature, seed=1, report=2)], [0])
        np.testing.assert_allclose(
            made["top_logprob"][0, :2], [-0.24274488, -4.24271288], atol=1e-6
        )
        assert made["top_token"][0, :2].tolist() == [5, 0]
        three = np.array([[2, 1, 0]], np.float32)
        made = sample(library, three, [Wish(temperature, report=3)], [0])
        np.testing.assert_allclose(
            made["top_logprob"][0, :3], [-0.40760596, -1.40760596, -2.40760596], atol=1e-6
        )
    chosen = sample(library, successor, [Wish(report=2, allowed=[9])], [0])
    assert chosen["drawn"][0] == 9
    np.testing.assert_allclose(chosen["logprob"][0], -4.24271288, atol=1e-6)


@pytest.mark.parametrize(
    ("row", "edits", "wanted"),
    [
        ([1, 1, 1, 1], [(1, 1.0, -0.5)], [1, 0.5, 1, 1]),
        ([1, 1, 1, 1], [(1, 1.0, -0.5 * 2)], [1, 0, 1, 1]),
        ([1, 1, 1, 1], [(0, 2.0, 0.0), (1, 2.0, 0.0)], [0.5, 0.5, 1, 1]),
        ([2, -2, 1], [(0, 2.0, 0.0), (1, 2.0, 0.0)], [1, -4, 1]),
    ],
)
def test_g32_what_edits_make_of_logits(
    library: Library, row: list[float], edits: list[tuple[int, float, float]], wanted: list[float]
) -> None:
    longer = [(i, 3.0, 1.0) for i in range(len(row))]
    logits = np.array([row, row, row], np.float32)
    made = sample(library, logits, [Wish(edits=longer), Wish(edits=edits), Wish()], [9, 1, 0])
    assert made["scores"][1].tolist() == wanted


def test_edits_of_one_token_come_one_after_another(library: Library) -> None:
    edits = [(7, 2.0, 1.0), (3, 1.0, 1.0), (7, 1.0, -5.0), (7, 3.0, 0.0), (3, 2.0, 0.0)]
    logits = np.full((1, 40), 4, np.float32)
    made = sample(library, logits, [Wish(edits=edits)], [0])
    assert made["scores"][0, [3, 7, 8]].tolist() == [2.5, -6.0, 4.0]
    assert made["drawn"][0] == 0


@pytest.mark.parametrize("vocab", [1, 31, 32, 33, 127, 128, 129, 2047, 49152, 262144, 300001])
def test_any_vocabulary(library: Library, vocab: int) -> None:
    rng = np.random.default_rng(vocab)
    logits = (rng.standard_normal((2, vocab)) * 3).astype(np.float32)
    allowed = sorted({0, vocab // 2, vocab - 1})
    wishes = [
        Wish(1.0, top_k=50, top_p=0.9, seed=3, report=5),
        Wish(1.0, top_p=0.99, seed=5, allowed=allowed),
    ]
    made = sample(library, logits, wishes, [17, 18])
    for row, at in ((0, 18), (1, 19)):
        wanted, margin = draw(logits[row], wishes[row], at)
        assert margin < 1e-6 or made["drawn"][row] == wanted
