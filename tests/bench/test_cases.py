"""The grid of what is timed, and where its steps stand."""

import msgspec
import pytest

from bedstone.bench.cases import (
    MOST_STEPS,
    Case,
    Grid,
    first_length,
    parse_sizes,
    steps_of_a_sample,
    tokens_needed,
)
from bedstone.errors import CallerError
from bedstone.spec.package import Lock

LOCK = Lock("0", "random:toy/bf16", "", "cpu-generic", "precise", 1000, 8, 32, "", "", {})
STEP = Case("decode", 1, 512)


def test_a_grid_is_every_batch_by_every_context_and_then_prompts():
    assert Grid((1, 8), (64, 512), (100,)).cases(LOCK) == (
        Case("decode", 1, 64),
        Case("decode", 1, 512),
        Case("decode", 8, 64),
        Case("decode", 8, 512),
        Case("prefill", 1, 100),
    )


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (Grid((9,), (64,)), "decodes up to 8 sequences; compile it with `--sequences 9`"),
        (Grid((1,), (1001,)), "context 1001: the package serves 1000"),
        (Grid((), (), (1001,)), "context 1001: the package serves 1000"),
        (Grid((), (64,)), "nothing to time"),
    ],
)
def test_what_a_package_does_not_serve_is_refused(grid, words):
    with pytest.raises(CallerError, match=words):
        grid.cases(LOCK)


def test_a_batch_and_a_prompt_take_tokens_in():
    assert Case("decode", 8, 512).tokens == 8
    assert Case("prefill", 1, 512).tokens == 512


def test_sizes_are_numbers_above_zero_each_once():
    assert parse_sizes("--batch", "8, 1,8") == (8, 1)
    assert parse_sizes("--batch", "") == ()
    for text in ("0", "-1", "1.5", "many", "1,0"):
        with pytest.raises(CallerError, match="`--batch` is"):
            parse_sizes("--batch", text)


def test_short_steps_are_timed_many_at_once_and_long_ones_alone():
    assert steps_of_a_sample(STEP, 1e-4) == MOST_STEPS
    assert steps_of_a_sample(STEP, 0.01) == 3
    assert steps_of_a_sample(STEP, 5.0) == 1
    assert steps_of_a_sample(STEP, 0.0) == MOST_STEPS
    assert steps_of_a_sample(Case("decode", 1, 16), 1e-4) == 2
    assert steps_of_a_sample(Case("decode", 1, 1), 1e-4) == 1


@pytest.mark.parametrize("steps", [1, 2, 7, 64])
def test_the_steps_of_a_sample_attend_the_context_on_average(steps):
    before = first_length(STEP, steps, 1000)
    attended = [before + 1 + step for step in range(steps)]
    assert abs(sum(attended) / steps - 512) <= 0.5


def test_no_step_goes_beyond_what_is_served():
    assert first_length(Case("decode", 1, 1000), 64, 1000) + 64 == 1000
    assert first_length(Case("decode", 1, 1), 1, 1000) == 1


def test_pages_hold_the_largest_case_and_where_its_steps_end():
    cases = Grid((1, 4), (100,), (128,)).cases(LOCK)
    assert tokens_needed(cases, LOCK) == 4 * 192
    assert tokens_needed(cases[-1:], LOCK) == 160
    whole = Grid((2,), (1000,)).cases(LOCK)
    assert tokens_needed(whole, LOCK) == 2 * 1024
    assert tokens_needed(whole, msgspec.structs.replace(LOCK, page=1000)) == 2000
