"""What clients ask is drawn from a seed."""

import numpy as np
import pytest

from bedstone.bench.load.asked import Mix, Span, draw_asks, parse_span
from bedstone.errors import CallerError


def test_a_span_is_one_number_or_two():
    assert parse_span("--words", "64") == Span(64, 64)
    assert parse_span("--words", "1-9") == Span(1, 9)
    assert str(Span(1, 9)) == "1-9"


@pytest.mark.parametrize("text", ["", "-", "3-", "-3", "0", "0-4", "9-1", "a", "1-2-3", "1" * 10])
def test_another_text_is_no_span(text):
    with pytest.raises(CallerError, match="--words"):
        parse_span("--words", text)


def test_a_seed_gives_the_same_requests_and_another_gives_others():
    mix = Mix(20, Span(3, 30), Span(1, 9), seed=5)
    assert draw_asks(mix) == draw_asks(mix)
    assert draw_asks(mix) != draw_asks(Mix(20, Span(3, 30), Span(1, 9), seed=6))


def test_lengths_lie_in_their_spans_and_reach_their_ends():
    asks = draw_asks(Mix(300, Span(3, 8), Span(1, 4)))
    assert {len(ask.prompt.split()) for ask in asks} == set(range(3, 9))
    assert {ask.max_tokens for ask in asks} == {1, 2, 3, 4}
    assert {ask.at for ask in asks} == {None}


def test_shared_words_come_first_and_something_follows():
    asks = draw_asks(Mix(50, Span(4, 12), Span(1, 1), shared=8))
    openings = {tuple(ask.prompt.split()[:8]) for ask in asks}
    assert len(openings) == 1
    assert all(len(ask.prompt.split()) >= 9 for ask in asks)
    assert len({ask.prompt for ask in asks}) == 50


def test_arrivals_are_those_of_a_poisson_process():
    asks = draw_asks(Mix(4000, Span(1, 1), Span(1, 1), rate=50.0, seed=1))
    gaps = np.diff([0.0, *(ask.at for ask in asks)])
    assert (gaps > 0).all()
    assert np.mean(gaps) == pytest.approx(1 / 50, rel=0.1)
    assert np.std(gaps) == pytest.approx(1 / 50, rel=0.1)
