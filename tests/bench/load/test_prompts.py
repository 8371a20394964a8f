"""Prompts of a data set."""

import json

import pytest

from bedstone.bench.load.asked import Mix, Span, draw_asks
from bedstone.bench.load.prompts import parse_prompts
from bedstone.errors import CallerError

TALKS = [
    {
        "id": "a",
        "conversations": [{"from": "human", "value": "one"}, {"from": "gpt", "value": "x"}],
    },
    {"id": "b", "conversations": [{"from": "gpt", "value": "no"}]},
    {"id": "c", "conversations": []},
    {"id": "d", "conversations": [{"from": "user", "value": "two"}]},
]


def test_a_sharegpt_file_gives_what_people_began_with():
    assert parse_prompts("f", json.dumps(TALKS).encode()) == ("one", "two")


def test_lines_give_their_prompts():
    text = b'{"prompt": "one", "more": 3}\n\n{"prompt": " "}\n{"prompt": "t\\u00e9"}'
    assert parse_prompts("f", text) == ("one", "té")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"hello", b'{"text": "a"}', b"[1]", b'{"prompt": ""}']
)
def test_another_file_holds_none(text):
    with pytest.raises(CallerError, match="`f` holds no prompts"):
        parse_prompts("f", text)


def test_each_is_asked_before_any_comes_again():
    prompts = [str(at) for at in range(10)]
    asked = [ask.prompt for ask in draw_asks(Mix(25, Span(1, 1), Span(3, 3)), prompts)]
    assert sorted(asked[:10]) == sorted(asked[10:20]) == prompts
    assert asked[:10] != prompts
    assert len(set(asked[20:])) == 5
