"""When answers came, in few numbers."""

import pytest

from bedstone.bench.load.answered import Answer, Quantiles, Summary
from bedstone.bench.load.picture import draw_waits


def answer(at=0, sent=0.0, pieces=(1.0, 1.5, 2.0), ended=2.5, tokens=3, **more):
    return Answer(at, sent, pieces, ended, tokens, **more)


def test_times_of_an_answer():
    one = answer(sent=0.5, tokens=5)
    assert one.first == 0.5
    assert one.each == 0.25
    assert one.gaps == (0.5, 0.5)


def test_an_answer_of_one_piece_has_no_time_a_further_token():
    one = answer(pieces=(1.0,), tokens=1)
    assert (one.first, one.each, one.gaps) == (1.0, None, ())
    assert answer(pieces=(), tokens=0).first is None


def test_quantiles_are_values_that_occurred():
    assert Quantiles.of(range(1, 101)) == Quantiles(50, 90, 99, 100)
    assert Quantiles.of([3.0]) == Quantiles(3.0, 3.0, 3.0, 3.0)
    assert Quantiles.of([]) is None


def test_rates_are_over_each_rounds_own_time():
    first = [answer(sent=0.0, ended=2.0, tokens=3), answer(sent=1.0, ended=4.0, tokens=5)]
    second = [answer(sent=100.0, pieces=(101.0,), ended=102.0, tokens=12)]
    found = Summary.of([first, second])
    assert found.seconds == 6.0
    assert found.rates == (2.0, 6.0)
    assert found.tokens_per_second == pytest.approx(20 / 6)
    assert found.requests_per_second == pytest.approx(0.5)
    assert found.whole == Quantiles(2.0, 3.0, 3.0, 3.0)


def test_an_answer_with_a_fault_counts_as_nothing_else():
    bad = answer(tokens=1000, fault="status 429")
    found = Summary.of([[answer(), bad, bad]])
    assert (found.requests, found.tokens, found.faults) == (3, 3, {"status 429": 2})
    none = Summary.of([[bad]])
    assert (none.tokens_per_second, none.first) == (0.0, None)


def test_the_picture_has_a_line_a_server_and_is_escaped():
    drawn = draw_waits(["a<b", "other"], [[answer()], [answer(pieces=(), tokens=0)]])
    assert "a&lt;b" in drawn
    assert drawn.count("stroke-width") == 4
    assert drawn.startswith("<svg")
