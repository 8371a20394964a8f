"""Fronts in processes of their own: together they are one server, and none leaves anything."""

import json
import os
import signal
import subprocess
import sys
import time
from http.client import IncompleteRead
from pathlib import Path

import openai
import pytest

from apart import KEY, PIECES, apart, children, gone, started, until
from fronts import events, told
from scripted import SUCCESSOR

pytestmark = pytest.mark.slow

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "hi"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
LONG = {"prompt": [0], "max_tokens": 4000, "temperature": 0}
SHORT = {"prompt": [0], "max_tokens": 2, "temperature": 0}


@pytest.fixture(scope="module")
def server():
    with apart(sequences=4, queue=4, step=0.002) as made:
        yield made


@pytest.fixture
def speakers(server):
    """A client of each front."""
    made = []
    for front in server.fronts:
        with server.only(front):
            made.append(openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0))
            assert made[-1].models.list().data[0].id == "scripted"
    yield made
    for each in made:
        each.close()


def test_openai_completes_at_every_front(speakers):
    for speaker in speakers:
        answer = speaker.completions.create(
            model="scripted", prompt=[0, 1], max_tokens=2, temperature=0, logprobs=1, echo=True, n=2
        )
        assert [choice.text for choice in answer.choices] == ["<0><1><2><3>"] * 2
        assert answer.choices[0].logprobs.token_logprobs == [None, *[SUCCESSOR] * 3]
        chunks = speaker.completions.create(
            model="scripted", prompt=[3], max_tokens=9, temperature=0, stream=True
        )
        text = "".join(chunk.choices[0].text for chunk in chunks)
        assert text == "".join(PIECES[4:13])


def test_openai_chats_calls_tools_and_keeps_to_a_schema_at_every_front(speakers):
    for speaker in speakers:
        with speaker.chat.completions.stream(
            model="scripted",
            messages=MESSAGES,
            tools=[WEATHER],
            stream_options={"include_usage": True},
        ) as stream:
            [call] = stream.get_final_completion().choices[0].message.tool_calls
        assert json.loads(call.function.arguments) == {"place": "Oslo"}
        schema = {"type": "object", "properties": {"a": {"enum": [7]}}, "required": ["a"],
                  "additionalProperties": False}  # fmt: skip
        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        answer = speaker.chat.completions.create(
            model="scripted", messages=MESSAGES, response_format=form, max_tokens=60
        )
        assert json.loads(answer.choices[0].message.content) == {"a": 7}
        with pytest.raises(openai.BadRequestError, match="grammar cannot be used"):
            speaker.completions.create(
                model="scripted", prompt=[0], extra_body={"guided_regex": "(a"}
            )


def test_more_than_may_wait_are_refused_whichever_front_has_the_others(server):
    one, other = (server.at(front) for front in server.fronts)
    one.stream(COMPLETIONS, {**LONG, "n": 7})
    # eight may be open: one more fits, two do not and leave none
    status, body = other.post(COMPLETIONS, {**SHORT, "n": 2})
    assert (status, body["error"]["code"]) == (429, "queue_full")
    until(lambda: server.stats()["waiting"] == 3)
    one.close()
    until(lambda: server.stats()["running"] == 0)
    assert other.post(COMPLETIONS, {**SHORT, "n": 2})[0] == 200


def test_counts_are_the_whole_servers(server):
    lines = [server.at(front) for front in server.fronts]

    def counts():
        return [
            {name: _figures(line.get("/metrics")[1]).get(name, 0) for name in expected}
            for line in lines
        ]

    expected = {
        'bedstone_responses_total{route="/v1/completions",status="200"}': 6,
        'bedstone_answers_total{finish="length"}': 6,
        "bedstone_time_to_first_token_seconds_count": 6,
        'bedstone_time_to_first_token_seconds_bucket{le="+Inf"}': 6,
        "bedstone_made_tokens_total": 12,
    }
    until(lambda: len({*map(str, counts())}) == 1)
    before = counts()[0]
    asked = [line.post(COMPLETIONS, SHORT)[0] for line in lines for _ in range(3)]
    assert asked == [200] * 6
    after = {name: before[name] + more for name, more in expected.items()}
    until(lambda: counts() == [after, after])
    [created] = {json.loads(line.get("/v1/models")[1])["data"][0]["created"] for line in lines}
    assert created == 1_700_000_000


def _figures(text):
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_keys_open_every_front(server):
    for front in server.fronts:
        line = server.at(front)
        line.key = "another key"
        assert line.post(COMPLETIONS, SHORT)[0] == 401
        assert KEY not in Path(f"/proc/{front}/cmdline").read_text()


def test_a_front_that_is_killed_takes_only_its_own_with_it():
    with apart(sequences=8, step=0.002) as server:
        killed, spared = server.fronts
        line = server.at(killed)
        assert line.post(COMPLETIONS, SHORT)[0] == 200
        lost = line.stream(COMPLETIONS, {**LONG, "n": 3})
        kept = server.at(spared).stream(COMPLETIONS, {**LONG, "max_tokens": 700})
        until(lambda: server.stats()["running"] == 4)
        time.sleep(0.3)
        os.kill(killed, signal.SIGKILL)
        with pytest.raises((ConnectionError, IncompleteRead)):
            lost.read()
        until(lambda: server.stats()["running"] == 1)
        until(lambda: len(server.fronts) == 2)
        assert killed not in server.fronts
        [new] = set(server.fronts) - {spared}
        assert server.at(new).post(COMPLETIONS, SHORT)[0] == 200
        assert told(events(kept.read().decode()))[1] == "length"
        # what it had counted is not forgotten
        name = 'bedstone_answers_total{finish="length"}'
        until(lambda: _figures(server.at(new).get("/metrics")[1])[name] == 3)
        server.stop()
        assert server.process.wait(20) == 0
        assert "a front ended with code -9: it is started again" in server.process.stderr.read()


def test_an_engine_that_fails_shows_at_every_front():
    with apart(engine="failing", step=0.01) as server:
        lines = [server.at(front) for front in server.fronts]
        streams = [server.at(front).stream(COMPLETIONS, LONG) for front in server.fronts]
        for stream in streams:
            *_, last = events(stream.read().decode())
            assert last["error"]["message"] == "the device is gone"
        status, body = lines[0].post(COMPLETIONS, SHORT)
        assert (status, body["error"]["code"]) == (500, "device")
        until(lambda: all(line.get("/health")[0] == 503 for line in lines))
        assert lines[1].get("/health") == (503, '{"status":"failed"}')
        assert lines[1].post(COMPLETIONS, SHORT)[0] == 500


def test_a_slow_reader_is_cut_and_told_to_stop_the_rest_finish():
    with apart(step=0.001, write_seconds=0.3, waiting_events=100_000) as server:
        front = server.fronts[0]
        slow = server.at(front).stream(COMPLETIONS, {**LONG, "n": 2, "logprobs": 5})
        began = time.monotonic()
        assert server.at(front).post(COMPLETIONS, {**LONG, "max_tokens": 100})[0] == 200
        assert time.monotonic() - began < 5
        until(lambda: server.stats()["running"] == 0)
        with pytest.raises((ConnectionError, IncompleteRead)):
            slow.read()
        lines = [server.at(each) for each in server.fronts]
        # no more than fits the sockets of one that is read after the other
        body = {**LONG, "max_tokens": 400}
        running = [server.at(each).stream(COMPLETIONS, body) for each in server.fronts]
        server.stop()
        until(lambda: all(line.get("/health")[0] == 503 for line in lines))
        assert lines[1].post(COMPLETIONS, SHORT)[1]["error"]["code"] == "shutting_down"
        assert [told(events(each.read().decode()))[1] for each in running] == ["length"] * 2
        fronts = server.fronts
        assert server.process.wait(20) == 0
        assert all(gone(each) for each in fronts)
        assert server.process.stderr.read() == ""


def test_what_does_not_finish_in_time_is_told_so_and_a_second_signal_ends_it_at_once():
    with apart(step=0.01, grace=0.2) as server:
        stream = server.at(server.fronts[0]).stream(COMPLETIONS, LONG)
        server.stop()
        *_, last = events(stream.read().decode())
        assert last["error"]["code"] == "shutting_down"
        assert server.process.wait(20) == 0
    with apart(step=0.01, grace=60) as server:
        fronts = server.fronts
        server.at(fronts[0]).stream(COMPLETIONS, LONG)
        server.stop()
        until(lambda: server.at(fronts[1]).get("/health")[0] == 503)
        server.stop()
        assert server.process.wait(5) == 0
        assert all(gone(each) for each in fronts)


def test_no_front_outlives_the_engines_process():
    with apart(step=0.01) as server:
        fronts = server.fronts
        server.at(fronts[0]).stream(COMPLETIONS, LONG)
        # a signal to all of the server's processes, as a service manager sends it, is the engine's
        for each in fronts:
            os.kill(each, signal.SIGTERM)
            os.kill(each, signal.SIGINT)
        assert server.client.get("/health").status_code == 200
        assert not any(gone(each) for each in fronts)
        server.process.kill()
        until(lambda: all(gone(each) for each in fronts))


def _when_a_front_begins(folder, line):
    """Have each front run a line of Python first; a path to be looked through for modules."""
    code = f"import os, sys, time\nif 'bedstone.serve.fronts.process' in sys.orig_argv: {line}\n"
    (folder / "sitecustomize.py").write_text(code)
    return [str(folder)]


def test_a_front_that_cannot_begin_ends_the_server(tmp_path):
    with started({}, _when_a_front_begins(tmp_path, "os._exit(7)")) as ended:
        said = ended.communicate(timeout=20)[1]
    assert "BedstoneError: a front ended with code 7 before it listened" in said


def test_a_server_that_is_told_to_stop_before_it_answers_does(tmp_path):
    with started({}, _when_a_front_begins(tmp_path, "time.sleep(60)")) as process:
        until(lambda: len(children(process.pid)) == 2, 20)
        fronts = children(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert all(gone(each) for each in fronts)
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_a_fronts_process_holds_no_runtime():
    code = (
        "import sys, bedstone.serve.fronts.process\n"
        "print(*sorted({'.'.join(each.split('.')[:3]) for each in sys.modules}))"
    )
    path = os.pathsep.join(sys.path)
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ).stdout.split()
    assert "bedstone.serve.http" in found
    heavy = {"bedstone.runtime", "bedstone.build", "bedstone.pool", "bedstone.serve.engine",
             "cuda", "torch", "llguidance"}  # fmt: skip
    assert heavy & set(found) == set()
