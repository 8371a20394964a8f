"""`bedstone serve`: who is let in, what is told, how it ends."""

import logging
import re
import signal
import socket
import threading
from types import SimpleNamespace

import httpx
import pytest
from msgspec.structs import replace

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.cli import serve
from bedstone.cli.environment import api_key
from bedstone.cli.serve_log import HEARD
from bedstone.cli.serve_options import Log, Reasoning, ToolParser
from bedstone.cli.serving import (
    Manners,
    answer,
    is_local,
    make_settings,
    read_keys,
    read_origins,
    require_private,
)
from bedstone.errors import CallerError, DeviceError
from bedstone.serve.http.server import Place, bound_socket
from bedstone.serve.http.settings import Settings, opens
from bedstone.serve.log import write_log
from bedstone.spec.package import Lock, emit_lock
from bedstone.spec.release import VERSION
from command_line import bedstone
from scripted import ScriptedEngine
from served import running
from succ import write_succ

PIECES = ["A", *"bcdefghijklmno"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_succ(tmp_path_factory.mktemp("succ") / "Model-0.5B", PIECES, eos=[15])


def manners(**given):
    usual = {"name": None, "host": "127.0.0.1", "timeout": 60.0, "body_bytes": 1 << 20}
    return Manners(
        **{**usual, "tool_parser": ToolParser.auto, "reasoning": Reasoning.auto, **given}
    )


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True),
        ("10.1.2.3", False), ("::", False), ("192.168.1.2", False), ("example.org", False),
    ],
)  # fmt: skip
def test_a_public_address_needs_a_key(host, local):
    assert is_local(host) == local
    require_private(host, ("a long key",), told=False)
    require_private(host, (), told=True)
    if local:
        require_private(host, (), told=False)
        return
    with pytest.raises(CallerError, match="--without-key"):
        require_private(host, (), told=False)


def test_keys_come_from_a_file_and_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("BEDSTONE_API_KEY", raising=False)
    assert read_keys(None) == ()
    path = tmp_path / "keys"
    path.write_text("first key\n\n  second key \n")
    assert read_keys(path) == ("first key", "second key")
    monkeypatch.setenv("BEDSTONE_API_KEY", "a third key")
    assert api_key() == "a third key"
    assert read_keys(path) == ("a third key", "first key", "second key")
    for text, complaint in ((b"\n", "holds no key"), (b"short", "shorter"), (b"\xff" * 9, "text")):
        path.write_bytes(text)
        with pytest.raises(CallerError, match=complaint):
            read_keys(path)


def test_an_origin_is_spelled_as_browsers_do():
    good = ("http://localhost:3000", "https://chat.example.org", "http://[::1]:80", "*")
    assert read_origins(good) == frozenset(good)
    app = "app://obsidian.md"
    assert read_origins([app]) == {app}
    for wrong in ("localhost:3000", "http://localhost/", "HTTP://a.b", "http://", "", "http://*.b"):
        with pytest.raises(CallerError, match="expected a scheme"):
            read_origins([wrong])


@pytest.mark.parametrize(
    ("log", "heard"),
    [
        (Log.off, ["error"]),
        (Log.rates, ["error", "rates"]),
        (Log.requests, ["error", "rates", "requests"]),
    ],
)
def test_the_log_says_what_it_is_told_to(capsys, log, heard):
    write_log(HEARD[log])
    names = ("bedstone.serve", "bedstone.serve.rates", "bedstone.serve.requests")
    errors, rates, requests = map(logging.getLogger, names)
    errors.error("error")
    rates.info("rates")
    requests.info("requests")
    lines = capsys.readouterr().err.splitlines()
    found = [re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d (.*)", line) for line in lines]
    assert [each[1] for each in found] == heard


def test_settings_are_what_the_model_and_the_command_line_say(checkpoint, tmp_path):
    opened = open_checkpoint(str(checkpoint))
    settings = make_settings(opened, tmp_path, manners(), ())
    assert (settings.model, settings.tools, settings.reasoning) == ("Model-0.5B", None, False)
    assert settings.hosts >= {"127.0.0.1", "localhost", "[::1]"}
    keyed = make_settings(opened, tmp_path, manners(name="m"), ("a long key",))
    assert (keyed.model, keyed.hosts) == ("m", None)
    assert opens(keyed.keys, "a long key")
    page = frozenset({"http://localhost:3000"})
    told = manners(tool_parser=ToolParser.llama3, reasoning=Reasoning.on, host="::", origins=page)
    forced = make_settings(opened, tmp_path, told, ())
    assert (forced.tools, forced.reasoning, forced.hosts) == ("llama3", True, None)
    assert (settings.origins, forced.origins) == (frozenset(), page)
    opened.close()


def test_what_computes_the_same_has_one_name(checkpoint, tmp_path):
    opened = open_checkpoint(str(checkpoint))
    lock = Lock("1", "/a", "i", "t", "quantized", 64, 2, 16, "cc", "s", {"m": "h"})
    names = []
    for other in (lock, replace(lock, checkpoint="/b"), replace(lock, modules={"m": "g"})):
        (tmp_path / "lock.json").write_bytes(emit_lock(other))
        names.append(make_settings(opened, tmp_path, manners(), ()).fingerprint)
    opened.close()
    assert names[0] == names[1] != names[2]
    assert re.fullmatch(r"bs_[0-9a-f]{12}", names[0])


@pytest.mark.parametrize("eos", [[15], []])
def test_answers_without_an_end_are_no_surprise(tmp_path, capsys, eos):
    opened = open_checkpoint(str(write_succ(tmp_path / "Model", PIECES, eos=eos)))
    lock = SimpleNamespace(bedstone=VERSION, sequences=2, context=8)
    package = SimpleNamespace(lock=lock, path=tmp_path)
    serve._tell_ready("m", opened, package, "http://127.0.0.1:8000")
    told = capsys.readouterr().err
    assert ("note: the checkpoint names no end token" in told) == (eos == [])
    assert told.endswith("`m` is served at http://127.0.0.1:8000: 2 at once, 8 tokens each\n")
    opened.close()


class Failing(ScriptedEngine):
    """An engine that fails at its first request, whose end it tells."""

    fault = None

    def __init__(self, _session, deliver, _options, _clock, failed):
        super().__init__(deliver)
        self._failed = failed

    def submit(self, request):
        super().submit(request)
        self.cancel(request.id)
        self.fault = "it fell off the bus"
        threading.Thread(target=self._failed).start()


@pytest.mark.parametrize("fronts", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_device_that_fails_ends_the_server(checkpoint, monkeypatch, fronts):
    monkeypatch.setattr("bedstone.serve.engine.ThreadedEngine", Failing)
    opened = open_checkpoint(str(checkpoint))
    asked = []

    def ask(url):
        found = httpx.post(f"{url}/v1/completions", json={"prompt": [0]}, timeout=20)
        asked.append(found.status_code)

    clients = []

    def ready(url):
        clients.append(threading.Thread(target=ask, args=(url,)))
        clients[0].start()

    with bound_socket("127.0.0.1", 0) as bound:
        place = Place(bound, 5.0)
        with pytest.raises(DeviceError, match="the engine has stopped: it fell off the bus"):
            answer(None, opened, Settings(model="m"), None, place, ready, fronts)
    clients[0].join(20)
    assert asked == [503]
    assert DeviceError.exit_code != 0
    opened.close()


def test_what_cannot_be_is_refused_before_anything_is_compiled(checkpoint, monkeypatch):
    monkeypatch.delenv("BEDSTONE_API_KEY", raising=False)
    ended = bedstone("serve", checkpoint, "--host", "::")
    assert ended.code == 2
    assert "there is no key" in ended.err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = bedstone("serve", checkpoint, "--port", port)
    assert ended.code == 2
    assert ended.err == f"bedstone: `127.0.0.1` port {port}: Address already in use\n"


@pytest.mark.slow
def test_it_serves_until_told_to_stop(checkpoint, own_cache):
    options = (checkpoint, "--numerics", "precise", "--sequences", 2, "--name", "m")
    place = {"BEDSTONE_CACHE": str(own_cache), "BEDSTONE_API_KEY": "a long key"}
    for fronts in (0, 2):
        with running(*options, "--fronts", fronts, **place) as (process, url):
            headers = {"authorization": "Bearer a long key"}
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
                body = {"prompt": [0], "temperature": 0}
                answer = client.post("/v1/completions", json=body)
                assert answer.json()["choices"][0]["text"] == "bcdefghijklmno"
                assert client.get("/v1/models").json()["data"][0]["id"] == "m"
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) == 0
                assert process.stderr.read() == ""
    [package] = (own_cache / "packages").iterdir()
    ended = bedstone("serve", package, "--sequences", 3)
    assert ended.code == 2
    assert "compile it with `--sequences 3`" in ended.err


@pytest.mark.slow
def test_rounds_that_a_package_has_not_are_refused(checkpoint, own_cache, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(own_cache))
    options = ("--numerics", "precise", "--sequences", 2, "--port", 0, "--rows", 4)
    ended = bedstone("serve", checkpoint, *options)
    assert ended.code == 2
    assert "`rows` is 4: expected 1, or those of a round; there are none" in ended.err
