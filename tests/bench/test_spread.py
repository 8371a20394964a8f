"""Times in few numbers."""

import pytest

from bedstone.bench.spread import Spread, ratios


def test_a_spread_is_the_median_the_quartiles_and_the_ends():
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 2.0, 4.0, 1.0, 5.0, 5)


def test_one_sample_has_no_spread():
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0, 2.0, 2.0, 1)


def test_a_slow_moment_moves_no_median():
    assert Spread.of([1.0, 1.0, 1.0, 9.0]).median == 1.0


def test_ratios_are_of_samples_taken_one_after_the_other():
    found = ratios([1.0, 2.0, 4.0], [2.0, 4.0, 8.0])
    assert (found.median, found.least, found.most) == (2.0, 2.0, 2.0)
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [1.0])
