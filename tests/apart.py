"""A server whose fronts are processes of their own, over an engine that answers as it is told.

Run as a script it is that server, set up by a JSON object; `Apart` is such a server under test.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import httpx
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backing

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.checkpoint.pieces import BYTE_OF
from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.errors import DeviceError
from bedstone.serve.fronts.opening import Opening
from bedstone.serve.fronts.parent import Fronts, serve_fronts
from bedstone.serve.http.backend import Backend
from bedstone.serve.http.front import Voice
from bedstone.serve.http.server import Place, bound_socket
from bedstone.serve.http.settings import Settings, digests
from bedstone.serve.link.hub import Hub
from bedstone.serve.requests import Limits, Request
from fronts import CHAT
from scripted import ScriptedEngine

PIECES = [f"<{at}>" for at in range(16)]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"place": "Oslo"}}\n</tool_call>'
KEY = "a key of it"
CHARACTER_OF = {byte: character for character, byte in BYTE_OF.items()}


def vocabulary() -> Tokenizer:
    """`PIECES`, then the 256 bytes, then the marks of thoughts; nothing ends an answer."""
    pieces = ["".join(CHARACTER_OF[byte] for byte in piece.encode()) for piece in PIECES]
    backing = Backing(models.BPE({name: at for at, name in enumerate([*pieces, *BYTE_OF])}, []))
    backing.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backing.decoder = decoders.ByteLevel()
    backing.add_special_tokens([AddedToken("<end>", special=True)])
    return Tokenizer(backing, None, (len(PIECES) + 256,))


def told(request: Request) -> Iterator[int | None]:
    """A call where the prompt has tools, and the end; else pieces in turn, for ever."""
    words = vocabulary()
    if "weather" in words.decode(request.tokens):
        yield from words.encode(CALL, special=False)
        yield None
    token = request.tokens[-1]
    while True:
        token = (token + 1) % len(PIECES)
        yield token


class FailingEngine(ScriptedEngine):
    """Its device fails after so many steps."""

    def submit(self, request: Request) -> None:
        if self.steps >= STEPS:
            raise DeviceError("the engine has stopped: its device is gone")
        super().submit(request)

    def _advance(self, name):
        if self.steps >= STEPS:
            return [self._ended(*self._running[name][::2], "error", "the device is gone")]
        return super()._advance(name)


STEPS = 20
ENGINES = {"scripted": ScriptedEngine, "failing": FailingEngine}


def serve(
    *,
    fronts: int = 2,
    engine: str = "scripted",
    step: float = 0.0,
    sequences: int = 4,
    queue: int = 16,
    context: int = 4096,
    grace: float = 10.0,
    **settings,
) -> None:
    """Be the server until told to stop; its URL goes to stdout."""
    hub = Hub()
    limits = Limits(context, vocab=400, sequences=sequences, queue=queue)
    made = ENGINES[engine](hub.deliver, told, limits=limits, step=step)
    voice = Voice(vocabulary(), ChatTemplate(CHAT))
    served = Settings("scripted", keys=digests([KEY]), tools="hermes", **settings)
    backend = Backend.of(made, voice.tokenizer, served, time.monotonic)
    opening = Opening.of(voice, served, limits, 1_700_000_000)
    with bound_socket("127.0.0.1", 0) as bound:
        # connections take the listener's size: what is not read soon fills it
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        parts = Fronts(backend, hub, opening, fronts)
        serve_fronts(parts, Place(bound, grace), _tell_url)


def _tell_url(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


class Apart:
    """Such a server in a process of its own, whose fronts can be told apart."""

    def __init__(self, process: subprocess.Popen, url: str) -> None:
        self.process = process
        self.url = url
        self.port = int(url.rpartition(":")[2])
        self.lines: list[Line] = []
        # nothing is encrypted here: the certificates need not be read
        known = {"authorization": f"Bearer {KEY}"}
        self.client = httpx.Client(base_url=url, timeout=20, headers=known, verify=False)  # noqa: S501

    @property
    def fronts(self) -> list[int]:
        """The processes of its fronts, oldest first."""
        return children(self.process.pid)

    @contextmanager
    def only(self, front: int) -> Iterator[None]:
        """Nobody but one of the fronts takes connections."""
        others = [each for each in self.fronts if each != front]
        for each in others:
            os.kill(each, signal.SIGSTOP)
        try:
            yield
        finally:
            for each in others:
                os.kill(each, signal.SIGCONT)

    def at(self, front: int) -> "Line":
        """A connection that one of the fronts has taken."""
        with self.only(front):
            self.lines.append(line := Line(self.port))
            assert line.get("/health")[0] in {200, 503}
        return line

    def stats(self) -> dict:
        return self.client.get("/stats").json()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)


class Line:
    """One connection, over which one asks after another."""

    def __init__(self, port: int) -> None:
        self.key = KEY
        self._connection = HTTPConnection("127.0.0.1", port, timeout=20)
        self._answers: list[HTTPResponse] = []

    def close(self) -> None:
        for each in (*self._answers, self._connection):
            each.close()

    def get(self, path: str) -> tuple[int, str]:
        return self._answer("GET", path)

    def post(self, path: str, body: dict) -> tuple[int, dict]:
        status, text = self._answer("POST", path, body)
        return status, json.loads(text)

    def stream(self, path: str, body: dict) -> HTTPResponse:
        """An answer whose head has come."""
        self._ask("POST", path, {"stream": True, "temperature": 0, **body})
        self._answers.append(self._connection.getresponse())
        return self._answers[-1]

    def _answer(self, method: str, path: str, body: dict | None = None) -> tuple[int, str]:
        self._ask(method, path, body)
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode()

    def _ask(self, method: str, path: str, body: dict | None) -> None:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, headers)


def children(process: int) -> list[int]:
    """The processes that a process started, oldest first."""
    path = f"/proc/{process}/task/{process}/children"
    return [int(each) for each in Path(path).read_text().split()]


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for a condition to hold."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def gone(process: int) -> bool:
    """Whether a process is no more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def started(options: dict, path: Sequence[str] = ()) -> subprocess.Popen:
    """The process of such a server; `path` is looked through for modules first."""
    return subprocess.Popen(
        [sys.executable, __file__, json.dumps(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*path, *sys.path])},
    )


@contextmanager
def apart(**options) -> Iterator[Apart]:
    """A server with fronts of their own, and at the end nothing of it."""
    process = started(options)
    url = process.stdout.readline().strip()
    assert url.startswith("http://"), process.stderr.read()
    server = Apart(process, url)
    try:
        yield server
    finally:
        for each in (server.client, *server.lines):
            each.close()
        process.kill()
        process.stdout.close()
        process.stderr.close()
        process.wait()


if __name__ == "__main__":
    serve(**json.loads(sys.argv[1]))
