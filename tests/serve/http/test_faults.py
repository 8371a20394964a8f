"""Clients that leave, dawdle, flood and send what is no request; the others are served on."""

import contextlib
import gzip
import json
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bedstone.serve.requests import Limits
from fronts import events, read_all, request, told
from scripted import letters

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
ENDLESS = {"prompt": [0], "max_tokens": 3000, "temperature": 0}
SHORT = {"prompt": [0], "max_tokens": 2, "temperature": 0}


def vocabulary():
    return letters([f"<{at}>" for at in range(100)])


def post(served, path, body, **options):
    return served.client.post(f"{served.url}{path}", json=body, **options)


def head(connection):
    """The status and the headers of what comes."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(65536)
        assert chunk
        received += chunk
    lines = received.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), headers


def counter(served, name):
    text = served.client.get(f"{served.url}/metrics").text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def forever(_request):
    while True:
        yield from range(1, 90)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("leave", ["close", "reset", "half"])
def test_g16_a_client_goes_away(served, stream, leave):
    server = served(vocabulary(), forever, step=0.002)
    engine = server.fronted.engine
    before = engine.stats().pages_held
    connection = server.ask(COMPLETIONS, {**ENDLESS, "stream": stream})
    if stream:
        assert head(connection)[0] == 200
    server.until(lambda: engine.stats().running == 1)
    time.sleep(0.05)
    if leave == "half":
        connection.shutdown(socket.SHUT_WR)
    elif leave == "reset":
        linger = (1).to_bytes(4, "little") + bytes(4)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    if leave != "half":
        connection.close()
    assert server.until(lambda: engine.stats().running == 0) < 1
    assert engine.stats().pages_held == before
    assert engine.finished["cancelled"] == 1
    assert counter(server, "bedstone_aborts_total") == 1
    connection.close()
    assert post(server, COMPLETIONS, SHORT).status_code == 200
    assert counter(server, "bedstone_aborts_total") == 1
    assert engine.finished["cancelled"] == 1


def test_g16_a_client_leaves_while_its_prompt_is_scored(served):
    server = served(vocabulary(), step=0.002)
    engine = server.fronted.engine
    fields = {"prompt": [*range(90)] * 20, "max_tokens": 0, "echo": True, "logprobs": 0}
    with server.ask(COMPLETIONS, fields):
        server.until(lambda: engine.stats().running == 1)
    server.until(lambda: engine.stats().running == 0)
    assert engine.finished["cancelled"] == 1


def test_g17_overload_is_refused_at_once(served):
    limits = Limits(4096, 400, 2, 2)
    server = served(vocabulary(), forever, limits=limits, step=0.02)
    body = {**ENDLESS, "max_tokens": 40}
    answers = []

    def ask():
        began = time.monotonic()
        response = post(server, COMPLETIONS, body)
        answers.append((response, time.monotonic() - began))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [(response, took) for response, took in answers if response.status_code != 200]
    assert len(refused) == 6
    for response, took in refused:
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        assert response.json()["error"]["type"] == "rate_limit_error"
        assert took < min(took for response, took in answers if response.status_code == 200)
    # several choices count as many; of those that do not fit none is left behind
    assert post(server, COMPLETIONS, {**SHORT, "n": 4}).status_code == 200
    with server.ask(COMPLETIONS, {**ENDLESS, "n": 2}):
        server.until(lambda: server.fronted.engine.stats().running == 2)
        assert post(server, COMPLETIONS, {**SHORT, "n": 3}).status_code == 429
    server.until(lambda: server.fronted.engine.stats().running == 0)
    assert post(server, COMPLETIONS, {**SHORT, "n": 3}).status_code == 200


def test_g18_a_stream_as_it_is_on_the_wire(served):
    server = served(vocabulary())
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 3}
    data = request(CHAT, json.dumps(body).encode(), "connection: close")
    received = read_all(server.send(data))
    start, _, rest = received.partition(b"\r\n\r\n")
    assert b"content-type: text/event-stream" in start.lower()
    chunks = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    assert told(events(b"".join(chunks).decode()))[1] == "length"


def test_a_slow_reader_is_cut_and_the_others_are_served(served):
    server = served(vocabulary(), forever, write_seconds=0.3, waiting_events=100_000)
    engine = server.fronted.engine
    body = {**ENDLESS, "n": 4, "max_tokens": 2000, "logprobs": 5, "stream": True}
    connection = server.ask(COMPLETIONS, body, receive_buffer=4096)
    server.until(lambda: engine.stats().running == 4)
    began = time.monotonic()
    server.until(lambda: not server.server.server_state.tasks, 20)
    assert post(server, COMPLETIONS, SHORT).status_code == 200
    assert time.monotonic() - began < 10
    assert engine.stats().running == 0
    received = b""
    with contextlib.suppress(ConnectionResetError):
        received = read_all(connection)
    assert b"[DONE]" not in received


def test_events_that_nobody_takes_do_not_pile_up(fronted):
    front = fronted(vocabulary(), forever, waiting_events=50)

    async def main(_client):
        import asyncio

        from bedstone.serve.http.bridge import Box, OverflowedError
        from bedstone.serve.requests import Request

        box = Box(50)
        front.bridge.expect("x", box)
        front.engine.submit(Request("x", [0], 500))
        await asyncio.sleep(0.3)
        with pytest.raises(OverflowedError):
            await box.take()
        return len(box._events)

    assert front.run(main) <= 51


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"prompt": "\xff\xfe"}', 400, "invalid_json"),
        (b'{"prompt": "\\ud800"}', 400, "invalid_json"),
        (b"", 400, "invalid_json"),
        (b"[]", 400, "invalid_value"),
        (b"\x00" * 100, 400, "invalid_json"),
        (b'{"prompt":' + b"[" * 100_000, 400, None),
        (b'{"messages": ' + b'[{"role": "user", "content": ' * 5, 400, None),
        (b'{"prompt": [0], "metadata": {"a":' + b'{"a":' * 50_000, 400, None),
        (b'{"prompt": [0], "guided_json": ' + b'{"items":' * 700 + b"1" + b"}" * 701, 400, None),
        (b'{"prompt": "a", "max_tokens": 1e400}', 400, None),
        (b'{"prompt": "a", "logit_bias": {"x": 1}}', 400, None),
        (b'{"prompt": "a", "logit_bias": {"999999": 1}}', 400, None),
    ],
)
def test_what_is_no_request_is_refused(served_once, body, status, code):
    response = served_once.client.post(
        f"{served_once.url}{COMPLETIONS}",
        content=body,
        headers={"content-type": "application/json"},
    )
    assert response.status_code == status
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert code in {None, error["code"]}
    assert post(served_once, COMPLETIONS, SHORT).status_code == 200


def test_ten_megabytes_are_refused_quickly_and_hold_nobody_up(served_once):
    """In processor time of this process: what else the machine does is no part of it."""
    other = []

    def small():
        while not over:
            began = time.process_time()
            assert post(served_once, COMPLETIONS, SHORT).status_code == 200
            other.append(time.process_time() - began)

    over = []
    thread = threading.Thread(target=small)
    thread.start()
    began = time.process_time()
    big = post(served_once, COMPLETIONS, {**SHORT, "prompt": "a" * 10_000_000})
    long = post(served_once, COMPLETIONS, {**SHORT, "prompt": "a" * 3_000_000})
    took = time.process_time() - began
    over.append(True)
    thread.join()
    assert big.status_code == 413
    assert big.json()["error"]["code"] == "body_too_large"
    assert long.status_code == 400
    assert long.json()["error"]["code"] == "context_length_exceeded"
    assert took < 3
    assert max(other) < 1


def test_a_body_that_does_not_say_it_is_json_is_refused(served_once):
    response = served_once.client.post(f"{served_once.url}{COMPLETIONS}", data={"prompt": "a"})
    assert (response.status_code, response.json()["error"]["code"]) == (415, "content_type")


def test_a_packed_body_is_refused(served_once):
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    packed = gzip.compress(json.dumps(SHORT).encode())
    url = f"{served_once.url}{COMPLETIONS}"
    response = served_once.client.post(url, content=packed, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (415, "content_encoding")
    plain = {"content-type": "application/json; charset=utf-8", "content-encoding": "identity"}
    body = b"\xef\xbb\xbf" + json.dumps(SHORT).encode()
    assert served_once.client.post(url, content=body, headers=plain).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        ["content-length: 5"],
        ["host: elsewhere"],
        ["transfer-encoding: chunked"],
        ["transfer-encoding: gzip"],
        ["x : 1"],
    ],
)
def test_a_request_that_two_readers_would_read_in_two_ways_ends_the_connection(
    served_once, headers
):
    whole = request(COMPLETIONS, json.dumps(SHORT).encode(), *headers)
    received = read_all(served_once.send(whole + whole))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost/v1/completions", b"200"),
        ("http://localhost:8000/v1/completions?a=b", b"200"),
        ("http://elsewhere/v1/completions", b"403"),
        ("http://localhost", b"405"),
        ("/http://localhost/v1/completions", b"404"),
    ],
)
def test_a_target_may_be_a_whole_url_whose_host_counts(served, target, status):
    server = served(vocabulary(), hosts=frozenset({"127.0.0.1", "localhost"}))
    sent = request(target, json.dumps(SHORT).encode(), "connection: close")
    assert read_all(server.send(sent)).split(b" ", 2)[1] == status


def test_a_body_of_two_lengths_is_refused_whichever_is_right(served_once):
    body = json.dumps(SHORT).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    whole = request(COMPLETIONS, chunked, "transfer-encoding: chunked")
    received = read_all(served_once.send(whole + whole))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1
    assert b'"code":"framing"' in received


def test_requests_that_come_at_once_are_answered_in_turn(served_once):
    asked = {**SHORT, "return_token_ids": True}
    bodies = [{**asked, "prompt": [at], "stream": at == 1} for at in range(3)]
    sent = b"".join(
        request(COMPLETIONS, json.dumps(body).encode(), *(["connection: close"] * (at == 2)))
        for at, body in enumerate(bodies)
    )
    received = read_all(served_once.send(sent))
    assert received.count(b"HTTP/1.1 200 OK") == 3
    places = [received.index(f'"prompt_token_ids":[{at}]'.encode()) for at in range(3)]
    assert places == sorted(places)


def test_headers_without_end_are_refused(served_once):
    connection = served_once.send(b"GET /health HTTP/1.1\r\nx: " + b"a" * 100_000)
    # what it had not read when it closed may have broken the connection
    with contextlib.suppress(ConnectionResetError):
        assert b" 400 " in read_all(connection).partition(b"\r\n")[0]
    assert served_once.client.get(f"{served_once.url}/health").json() == {"status": "ok"}


def test_a_request_that_never_comes_whole_is_cut(served, monkeypatch):
    from bedstone.serve.http import protocol

    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.2)
    server = served(vocabulary(), body_seconds=0.2)
    assert read_all(server.send(b"POST /v1/comp")) == b""
    assert read_all(server.send(b"")) == b""
    start = request(COMPLETIONS, b"x" * 100, "connection: close")[:-50]
    assert b" 408 " in read_all(server.send(start)).partition(b"\r\n")[0]


def test_an_error_of_the_engine_ends_the_stream_with_it(served):
    def failing(_request):
        yield from (1, 2, RuntimeError("out of luck"))

    server = served(vocabulary(), failing)
    text = post(server, COMPLETIONS, {**SHORT, "max_tokens": 9, "stream": True}).text
    *_, last = events(text)
    assert last["error"]["message"] == "out of luck"
    assert last["error"]["type"] == "server_error"
    response = post(server, COMPLETIONS, {**SHORT, "max_tokens": 9})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "engine")


def test_a_device_that_failed_shows(fronted, monkeypatch):
    from bedstone.errors import DeviceError

    def broken(_request):
        raise DeviceError("the engine has stopped")

    front = fronted(vocabulary(), forever)
    assert front.get("/health").status_code == 200
    monkeypatch.setattr(front.engine, "submit", broken)
    response = front.post(COMPLETIONS, SHORT)
    assert (response.status_code, response.json()["error"]["code"]) == (500, "device")
    assert front.get("/health").json() == {"status": "failed"}


def test_a_stream_that_waits_says_that_it_is_there(served):
    server = served(vocabulary(), forever, limits=Limits(4096, 400, 1, 4), comment_seconds=0.05)
    server.fronted.engine.step = 0.01
    with server.ask(COMPLETIONS, {**ENDLESS, "max_tokens": 40}):
        server.until(lambda: server.fronted.engine.stats().running == 1)
        text = post(server, COMPLETIONS, {**SHORT, "stream": True}).text
    assert text.startswith(":\n\n")
    assert told(events(text)) == ("<1><2>", "length")


def test_an_answer_that_takes_too_long_is_ended(served):
    server = served(vocabulary(), forever, step=0.01, deadline_seconds=0.2)
    response = post(server, COMPLETIONS, ENDLESS)
    assert (response.status_code, response.json()["error"]["code"]) == (504, "deadline")


def test_told_to_stop_it_finishes_what_runs_and_takes_no_more(served):
    server = served(vocabulary(), forever, step=0.01)
    connection = server.ask(COMPLETIONS, {**ENDLESS, "max_tokens": 60, "stream": True})
    assert head(connection)[0] == 200
    server.stop()
    refused = post(server, COMPLETIONS, SHORT)
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "shutting_down"
    assert refused.headers["retry-after"] == "1"
    assert server.client.get(f"{server.url}/health").status_code == 503
    assert b"data: [DONE]" in read_all(connection)
    server.thread.join(10)
    assert not server.thread.is_alive()
    assert server.fronted.engine.finished["length"] == 1


def test_what_does_not_finish_in_time_is_told_so(served):
    server = served(vocabulary(), forever, step=0.01, grace=0.2)
    connection = server.ask(COMPLETIONS, {**ENDLESS, "stream": True})
    assert head(connection)[0] == 200
    server.stop()
    received = read_all(connection)
    assert b'"code":"shutting_down"' in received
    assert b"data: [DONE]" in received
    server.thread.join(10)


@pytest.mark.parametrize("seed", [1, 2])
def test_in_a_crowd_each_gets_its_own_and_nothing_is_left(served, seed):
    """Some stay, some leave at once or in the middle, some send half a request."""
    chance = random.Random(seed)  # noqa: S311 - a test that repeats
    server = served(letters([f"<{at}>" for at in range(256)]), step=0.001)

    def stay(start, count, stream):
        body = {"prompt": [start], "max_tokens": count, "temperature": 0, "stream": stream}
        response = post(server, COMPLETIONS, body)
        if response.status_code == 429:
            return
        text = told(events(response.text))[0] if stream else response.json()["choices"][0]["text"]
        assert text == "".join(f"<{at}>" for at in range(start + 1, start + count + 1))

    def leave(start, _count, stream):
        body = {"prompt": [start], "max_tokens": 100, "temperature": 0, "stream": stream}
        connection = server.ask(COMPLETIONS, body)
        time.sleep(chance.random() * 0.02)
        connection.close()

    def break_off(_start, count, _stream):
        whole = request(COMPLETIONS, b'{"prompt": [0]}' + b" " * 100)
        server.send(whole[: -count - 1]).close()

    kinds = [stay, stay, stay, leave, break_off]
    asks = [
        (
            chance.choice(kinds),
            chance.randrange(100),
            chance.randrange(1, 60),
            chance.random() < 0.5,
        )
        for _ in range(120)
    ]
    with ThreadPoolExecutor(12) as crowd:
        for done in [crowd.submit(kind, *given) for kind, *given in asks]:
            done.result()
    server.until(lambda: not server.server.server_state.tasks)
    server.until(lambda: server.fronted.engine.stats().running == 0)
    assert server.fronted.bridge._boxes == {}


@pytest.fixture(scope="module")
def served_once():
    from fronts import Fronted, Served

    server = Served(Fronted(vocabulary(), forever))
    yield server
    server.close()
    server.fronted.close()
