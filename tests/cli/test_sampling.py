"""What the options of drawing ask for, and what a run tells of it."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bedstone.build.request import Package
from bedstone.cli.outcome import Answers, Outcome
from bedstone.cli.sampling import require_sampler, sampling_of
from bedstone.errors import CallerError
from bedstone.spec.package import Lock
from bedstone.spec.sampling import Sampling

SECONDS = {"first_seconds": 1.0, "prefill_seconds": 1.0, "decode_seconds": 0.0}
OUTCOME = Outcome("a", [1], "stop", 1, **SECONDS)


def test_without_an_option_the_likeliest_comes() -> None:
    assert sampling_of(None, None, None, None, None, None) is None


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ((0.7, None, None, None, 3, None), Sampling(0.7, seed=3)),
        ((0.0, None, None, None, 3, None), Sampling(0.0, seed=3)),
        ((None, 5, None, None, 3, None), Sampling(1.0, top_k=5, seed=3)),
        ((None, None, 0.0, None, 3, None), Sampling(1.0, top_p=0.0, seed=3)),
        ((2.0, -1, 0.5, 0.1, -3, 1.2), Sampling(2.0, -1, 0.5, 0.1, -3, 1.2)),
    ],
)
def test_a_temperature_is_one_where_another_option_asks_for_a_draw(options, asked) -> None:
    assert sampling_of(*options) == asked


def test_a_penalty_alone_draws_nothing() -> None:
    asked = sampling_of(None, None, None, None, None, 1.3)
    assert asked is not None
    assert (asked.temperature, asked.repetition) == (0.0, 1.3)


def test_a_seed_that_nobody_gives_is_another_each_time() -> None:
    seeds = {sampling_of(1.0, *[None] * 5).seed for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_package_without_a_sampler_is_refused() -> None:
    lock = Lock("1", "/c", "i", "cpu-generic", "precise", 64, 1, 32, "cc", "s", {})
    require_sampler(Package(Path("p"), msgspec.structs.replace(lock, sampling="0" * 64)))
    with pytest.raises(CallerError, match="compile it with `--sampler`, or run its checkpoint"):
        require_sampler(Package(Path("p"), lock))


def test_the_seed_is_told_where_tokens_hang_on_it() -> None:
    assert "seed" not in OUTCOME.line()
    assert OUTCOME.json()["seed"] is None
    drawn = replace(OUTCOME, seed=77)
    assert drawn.line().endswith(" · seed 77")
    assert drawn.json()["seed"] == 77
    assert Answers([], **SECONDS, seed=5).line().endswith(" · seed 5")
