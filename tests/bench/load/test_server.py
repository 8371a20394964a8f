"""Where a server answers, and what it is sent."""

import json

import pytest

from bedstone.bench.load.asked import Ask
from bedstone.bench.load.server import Place, Server, emit_body, parse_place
from bedstone.errors import CallerError


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://a:81", Place("a", 81, False, "a:81", "")),
        ("http://a/", Place("a", 80, False, "a", "")),
        ("https://A.b/up/", Place("a.b", 443, True, "A.b", "/up")),
        ("http://[::1]:8000", Place("::1", 8000, False, "[::1]:8000", "")),
        ("http://me:secret@a", Place("a", 80, False, "a", "")),
    ],
)
def test_a_url_is_taken_apart(url, place):
    assert parse_place(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a:80",
        "http://",
        "ftp://a",
        "http://a:b",
        "http://a:99999",
        "http://[a",
        "http://é",
        "http://a b",
    ],
)
def test_another_text_is_no_url(url):
    with pytest.raises(CallerError, match="no server's URL"):
        parse_place(url)


def test_a_body_says_what_is_asked():
    body = json.loads(emit_body(Server("http://a", "m"), Ask("hi", 4, None)))
    options = {"temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    assert body == {"model": "m", "prompt": "hi", "max_tokens": 4, **options}
    chat = json.loads(
        emit_body(Server("http://a", "m", chat=True), Ask("hi", 4, None, ignore_eos=True))
    )
    messages = [{"role": "user", "content": "hi"}]
    asked = {"model": "m", "messages": messages, "max_tokens": 4, "ignore_eos": True}
    assert chat == asked | options
