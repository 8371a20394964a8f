"""Server-sent events, however they are cut."""

import json

import pytest

from bedstone.bench.load import stream
from bedstone.bench.load.stream import Stream


def event(**value):
    return f"data: {json.dumps(value)}\n\n".encode()


TEXT = b"".join(
    [
        b": a comment\n\n",
        event(choices=[{"text": "é"}]),
        event(choices=[{"text": ""}]),
        b"event: more\nid: 3\n"
        + event(choices=[{"text": "b", "index": 0, "logprobs": {"x": [1]}}]),
        event(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 5}),
        b"data: [DONE]\n\n",
    ]
)


def read(*parts):
    """A stream whose parts come at 1, 2, 3, ..."""
    found = Stream()
    for at, part in enumerate(parts, 1):
        found.take(part, float(at))
    return found


@pytest.mark.parametrize("text", [TEXT, TEXT.replace(b"\n", b"\r\n")])
def test_it_is_the_same_wherever_it_is_cut(text):
    for at in range(len(text)):
        found = read(text[:at], text[at:])
        assert len(found.pieces) == 2
        assert (found.fault, found.usage.completion_tokens) == (None, 5)


def test_a_piece_came_when_its_end_did():
    one, two = event(choices=[{"text": "a"}]), event(choices=[{"text": "b"}])
    assert read(one[:9], one[9:] + two, two).pieces == [2.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("delta", "pieces"),
    [
        ({"role": "assistant", "content": ""}, 0),
        ({"content": "a"}, 1),
        ({"content": None, "reasoning_content": "a"}, 1),
        ({"reasoning": "a"}, 1),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, 1),
        ({}, 0),
    ],
)
def test_whatever_a_chat_tells_is_a_piece(delta, pieces):
    assert len(read(event(choices=[{"delta": delta}])).pieces) == pieces


def test_counts_are_the_last_ones_that_were_told():
    details = {"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
    told = [event(usage={"completion_tokens": 1}), event(usage=details), event(usage=None)]
    found = read(*told)
    assert (found.usage.prompt_tokens, found.usage.cached_tokens) == (4, 3)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"", "a stream cut short"),
        (b"data: [DONE]", "a stream cut short"),
        (b"data: [DONE]\n", None),
        (b"data: {\n", "no JSON in an event"),
        (b"data: \xff\n", "no JSON in an event"),
        (b"data: []\n", "an event that is no completion's"),
        (event(choices=[{"text": 3}]), "an event that is no completion's"),
        (event(error={"message": "no"}) + b"data: [DONE]\n", "an error in the stream"),
        (event(error=None) + b"data: [DONE]\n", None),
    ],
)
def test_what_is_wrong_is_told(text, fault):
    assert read(text).fault == fault


def test_nothing_counts_behind_the_end():
    one = event(choices=[{"text": "a"}])
    assert read(b"data: [DONE]\n\n" + one).pieces == []
    assert read(b"data: {\n\n" + one).pieces == []


def test_a_line_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(stream, "MOST_LINE", 100)
    assert read(b"data: " + b"x" * 100).fault == "an event without an end"
