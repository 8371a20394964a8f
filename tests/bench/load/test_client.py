"""Requests sent to a server that answers with a script."""

import asyncio
import socket
import threading
from contextlib import closing, contextmanager
from tempfile import TemporaryFile
from time import perf_counter

import pytest

from bedstone.bench.load import connection
from bedstone.bench.load.asked import Mix, Span, draw_asks
from bedstone.bench.load.client import Load, first_model
from bedstone.bench.load.queue import write_queue
from bedstone.bench.load.server import Server, emit_body
from bedstone.errors import CallerError
from fake_server import Script, serving


def loaded(server, mix, clients=2):
    """The answers by request, how many had ended each time, how busy it was."""
    ended = []
    asks = draw_asks(mix)
    with TemporaryFile() as file:
        queue = write_queue(file, [emit_body(server, ask) for ask in asks], [a.at for a in asks])
        load = Load(server, queue, ended.append)
        answers, busy = asyncio.run(load.run(clients, perf_counter()))
    return sorted(answers, key=lambda answer: answer.ask), ended, busy


def driven(script, mix, clients=2, key=None, **more):
    with serving(script) as url:
        server = Server(url + "/", asyncio.run(first_model(url + "/", key)), key, **more)
        answers, ended, _ = loaded(server, mix, clients)
    return answers, ended


@contextmanager
def speaking(*answers):
    """The URL of a server that says these bytes, one answer a connection, and closes it."""

    def speak():
        for answer in answers:
            with closing(listener.accept()[0]) as taken:
                taken.recv(1 << 16)
                taken.sendall(answer)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(5)
        thread = threading.Thread(target=speak)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


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


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
TOLD = b'data: {"choices": [{"text": "a"}]}\r\n\r\ndata: [DONE]\r\n\r\n'


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (HEAD + b"\r\n" + TOLD, None),
        (HEAD + b"content-length: %d\r\n\r\n" % len(TOLD) + TOLD, None),
        (HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(TOLD) + TOLD, None),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"\r\n" + TOLD, None),
        (HEAD + b"content-length: 9999\r\n\r\n" + TOLD, "a connection cut"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n", "a connection cut"),
        (b"", "a connection cut"),
        (b"nothing of the kind\r\n\r\n", "an answer that is no HTTP"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n", "an answer that is no HTTP"),
    ],
)
def test_an_answer_ends_as_http_has_it(said, fault):
    with speaking(said) as url:
        answers, _, _ = loaded(Server(url, "m"), mix(1), 1)
    assert [answer.fault for answer in answers] == [fault]
    if fault is None:
        assert [len(answer.pieces) for answer in answers] == [1]


def test_a_connection_that_the_server_closes_is_not_asked_again():
    said = HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(TOLD) + TOLD
    with speaking(said, said) as url:
        answers, _, _ = loaded(Server(url, "m"), mix(2), 1)
    assert [answer.fault for answer in answers] == [None, None]


def test_one_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.05)
    answers, _ = driven(Script(delay=0.3), mix(1))
    assert answers[0].fault == "nothing for 0 s"


def test_nobody_is_told_as_such():
    answers, _, _ = loaded(Server("http://127.0.0.1:1", "m"), mix(1))
    assert answers[0].fault == "no connection: Connection refused"


def test_a_chat_is_asked_with_messages():
    script = Script(pieces=3)
    answers, _ = driven(script, mix(2), chat=True)
    assert [len(answer.pieces) for answer in answers] == [3, 3]
    assert {tuple(asked["messages"][0]) for asked in script.asked} == {("role", "content")}


def test_how_busy_it_was_is_counted():
    with serving(Script(pieces=5, delay=0.02)) as url:
        _, _, busy = loaded(Server(url, "m"), mix(4))
    assert 0 < busy.cpu_seconds < busy.seconds
    assert busy.seconds >= 0.2
    assert len(busy.lags) > 3


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://x.invalid"])
def test_a_server_that_is_none_is_a_callers_error(url):
    with pytest.raises(CallerError, match="lists no models"):
        asyncio.run(first_model(url, None))


@pytest.mark.parametrize("list_", [b'{"data": []}', b"[]", b"{", b'{"data": [{"id": 1}]}'])
def test_a_list_of_no_models_is_a_callers_error(list_):
    said = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(list_) + list_
    with speaking(said) as url, pytest.raises(CallerError, match="lists no models"):
        asyncio.run(first_model(url, None))
