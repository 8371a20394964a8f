"""Answers that were soon enough."""

import pytest

from bedstone.bench.load.answered import Answer
from bedstone.bench.load.goodput import Goal, Goodput, parse_goal
from bedstone.errors import CallerError


def answer(first=0.1, each=0.05, tokens=3, fault=None):
    pieces = tuple(first + each * at for at in range(tokens))
    return Answer(0, 0.0, pieces, 1.0, tokens, fault=fault)


def test_a_goal_is_in_milliseconds():
    assert parse_goal("--within", "first=200,each=50.5") == Goal(first=0.2, each=0.0505)
    assert parse_goal("--within", "whole=1000") == Goal(whole=1.0)


@pytest.mark.parametrize(
    "text", ["", "first", "first=", "first=0", "gap=3", "first=nan", "each=inf"]
)
def test_another_text_is_no_goal(text):
    with pytest.raises(CallerError, match="--within"):
        parse_goal("--within", text)


@pytest.mark.parametrize(
    ("one", "met"),
    [
        (answer(), True),
        (answer(first=0.21), False),
        (answer(each=0.11), False),
        (answer(tokens=1), True),
        (answer(tokens=0), False),
        (answer(fault="status 429"), False),
    ],
)
def test_all_of_a_goal_is_to_be_met(one, met):
    assert Goal(first=0.2, each=0.1).met_by(one) is met
    assert not Goal(whole=0.9).met_by(one)


def test_the_rate_is_of_those_alone():
    found = Goodput.of(
        Goal(first=0.2), [answer(), answer(), answer(first=0.3), answer(fault="x")], 4.0
    )
    assert (found.requests, found.share, found.requests_per_second) == (2, 0.5, 0.5)
    assert found.json()["goal"] == {"first": 0.2, "each": None, "whole": None}
