"""argmax: the next token, and where the next step writes it."""

import numpy as np
import pytest

from kernels.harness import Library, poison

PAGES = np.array([[2, 0, 1]], np.int32)
PAGE = 4
OUTPUTS = ("next", "error", "token", "at", "to_slot")


def closing(
    library: Library, logits: np.ndarray, position: list[int]
) -> tuple[dict[str, int], np.ndarray]:
    outs = {name: poison((1,), np.int32) for name in OUTPUTS}
    run = np.full(12, -5, np.int32)
    library.call(
        "argmax", logits=logits, position=np.array(position, np.int32), pages=PAGES,
        **outs, run=run, rows=len(position), vocab=logits.shape[-1], page=PAGE, pages_width=3,
    )  # fmt: skip
    return {name: int(value[0]) for name, value in outs.items()}, run


@pytest.mark.parametrize("vocab", [1, 3, 31, 1024, 1025, 49152])
def test_the_largest_logit_is_next_and_the_step_advances(library: Library, vocab: int) -> None:
    rng = np.random.default_rng(vocab)
    for _ in range(4):
        logits = rng.standard_normal((1, vocab)).astype(np.float32)
        out, run = closing(library, logits, [2, 3, 4])
        token = int(logits.argmax())
        assert out == {"next": token, "error": 0, "token": token, "at": 5, "to_slot": 1}
        assert run[5] == token
        assert (np.delete(run, 5) == -5).all()


def test_c28_ties_take_the_lower_index(library: Library) -> None:
    logits = np.zeros((1, 512), np.float32)
    logits[0, [5, 256]] = 1
    assert closing(library, logits, [0])[0]["next"] == 5
    late = np.zeros((1, 5000), np.float32)
    assert closing(library, late, [0])[0]["next"] == 0
    late[0, [4099, 4100, 2047, 4999]] = 3
    assert closing(library, late, [0])[0]["next"] == 2047
    assert closing(library, np.full((1, 77), -np.float32(3e38)), [0])[0]["next"] == 0


@pytest.mark.parametrize("bad", [[np.nan, 1, 2], [np.nan] * 3, [np.inf, 1, 2], [1, 2, -np.inf]])
@pytest.mark.parametrize("pad", [0, 3000])
def test_c30_logits_that_are_not_finite_are_an_error(
    library: Library, bad: list[float], pad: int
) -> None:
    logits = np.array([[0.0] * pad + bad], np.float32)
    out, run = closing(library, logits, [6])
    assert out == {"next": 0, "error": 1, "token": 0, "at": 6, "to_slot": 2}
    assert (run == -5).all()


def test_past_the_last_position_nothing_is_written(library: Library) -> None:
    out, run = closing(library, np.array([[1, 9]], np.float32), [11])
    assert out == {"next": 1, "error": 0, "token": 1, "at": 11, "to_slot": -1}
    assert (run == -5).all()


@pytest.mark.parametrize("vocab", [3, 5000])
@pytest.mark.parametrize("bad", [False, True])
def test_each_row_of_a_batch_advances_as_it_would_alone(
    library: Library, vocab: int, *, bad: bool
) -> None:
    logits = np.random.default_rng(vocab).standard_normal((3, vocab)).astype(np.float32)
    if bad:
        logits[1, 2] = np.inf
    position, pages = np.array([5, 11, 0], np.int32), np.array([[2, 0, 1], [4, 3, 5], [7, 6, 8]])
    outs = {name: poison((3,), np.int32) for name in OUTPUTS if name != "error"}
    error = poison((1,), np.int32)
    library.call(
        "argmax_rows", logits=logits, position=position, pages=pages.astype(np.int32), **outs,
        error=error, rows=3, vocab=vocab, page=PAGE, pages_width=3,
    )  # fmt: skip
    assert error[0] == bad
    tokens = [0, 0, 0] if bad else logits.argmax(axis=1).tolist()
    assert outs["next"].tolist() == outs["token"].tolist() == tokens
    assert outs["at"].tolist() == [5 + (not bad), 11, 0 + (not bad)]
    assert outs["to_slot"].tolist() == ([1, 23, 28] if bad else [2, -1, 29])


@pytest.mark.parametrize("rows", [1, 8, 17, 64, 77])
def test_every_row_of_a_large_batch_is_looked_at(library: Library, rows: int) -> None:
    rng = np.random.default_rng(rows)
    pages = np.arange(3 * rows, dtype=np.int32).reshape(rows, 3)
    for bad in (None, 0, rows // 2, rows - 1):
        logits = rng.standard_normal((rows, 300)).astype(np.float32)
        if bad is not None:
            logits[bad, 299] = np.nan
        outs = {name: poison((rows,), np.int32) for name in OUTPUTS if name != "error"}
        error = poison((1,), np.int32)
        library.call(
            "argmax_rows", logits=logits, position=np.full(rows, 4, np.int32), pages=pages, **outs,
            error=error, rows=rows, vocab=300, page=PAGE, pages_width=3,
        )  # fmt: skip
        assert error[0] == (bad is not None)
        tokens = logits.argmax(axis=1) if bad is None else np.zeros(rows)
        np.testing.assert_array_equal(outs["next"], tokens)
        np.testing.assert_array_equal(outs["token"], tokens)
        assert set(outs["at"].tolist()) == {5 if bad is None else 4}
