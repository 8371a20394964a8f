"""Requests sent to a server that answers with a script."""

import asyncio

import pytest

from bedstone.bench.load.asked import Mix, Span, draw_asks
from bedstone.bench.load.client import drive, first_model
from bedstone.errors import CallerError
from fake_server import Script, serving


def driven(script, mix, clients=2, key=None):
    ended = []
    with serving(script) as url:
        server = asyncio.run(first_model(url + "/", key))
        answers = asyncio.run(drive(server, draw_asks(mix), clients, ended.append))
    return answers, ended


def mix(requests=5, **more):
    return Mix(requests, Span(2, 4), Span(6, 6), **more)


def test_every_request_is_sent_and_its_answer_read():
    script = Script(pieces=3)
    answers, ended = driven(script, mix(), key="secret")
    assert [answer.ask for answer in answers] == list(range(5))
    assert ended == [1, 2, 3, 4, 5]
    for one in answers:
        assert one.fault is None
        assert (len(one.pieces), one.tokens, one.prompt_tokens, one.cached_tokens) == (3, 6, 7, 4)
        assert one.sent <= one.pieces[0] <= one.pieces[-1] <= one.ended
    assert {asked["model"] for asked in script.asked} == {"scripted"}
    assert {asked["max_tokens"] for asked in script.asked} == {6}
    assert script.keys == ["Bearer secret"]


def test_no_more_clients_ask_at_once_than_there_are():
    script = Script(pieces=2, delay=0.01)
    driven(script, mix(12), clients=3)
    assert script.most_live == 3


def test_arrivals_do_not_wait_for_answers():
    script = Script(pieces=1, delay=0.3)
    driven(script, mix(6, rate=1000.0), clients=1)
    assert script.most_live == 6


def test_pieces_are_counted_where_the_server_counts_no_tokens():
    answers, _ = driven(Script(pieces=4, usage=False), mix(1))
    assert (answers[0].tokens, answers[0].prompt_tokens, answers[0].fault) == (4, None, None)


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (Script(status=429), "status 429"),
        (Script(cut=True), "a stream cut short"),
        (Script(error=True), "an error in the stream"),
    ],
)
def test_what_goes_wrong_is_told(script, fault):
    answers, _ = driven(script, mix(2))
    assert {answer.fault for answer in answers} == {fault}


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nothing", "http://"])
def test_a_server_that_is_none_is_a_callers_error(url):
    with pytest.raises(CallerError, match="lists no models"):
        asyncio.run(first_model(url, None))
