"""A front over a scripted engine, called without a socket."""

import asyncio
import json
import signal
import socket
import threading
import time
from datetime import UTC, datetime

import httpx

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.serve.http.alone import Server
from bedstone.serve.http.app import application
from bedstone.serve.http.backend import Backend
from bedstone.serve.http.bridge import Bridge
from bedstone.serve.http.front import Front, Voice
from bedstone.serve.http.server import Place, bound_socket
from bedstone.serve.http.settings import Settings
from bedstone.serve.requests import Limits
from scripted import Script, ScriptedEngine, Spelled, letters, successor

CHAT = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
    "{% for c in m.tool_calls or [] %}({{ c.function.name }} {{ c.function.arguments | tojson }})"
    "{% endfor %}{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}[answer]"
)
VOCAB = 400


class Fronted:
    """An application, its engine, and how to call it.

    The engine says what `script` does; by default tokens that go on from the last of the prompt.
    """

    def __init__(
        self,
        vocabulary: Spelled | None = None,
        script: Script = successor,
        *,
        template: str | None = CHAT,
        limits: Limits | None = None,
        step: float = 0.0,
        tokens: dict[str, str] | None = None,
        **settings,
    ) -> None:
        self.vocabulary = vocabulary or letters([f"<{at}>" for at in range(16)], eos=[15])
        self.bridge = Bridge()
        limits = limits or Limits(context=4096, vocab=VOCAB, sequences=4, queue=16)
        self.engine = ScriptedEngine(self.bridge.deliver, script, limits=limits, step=step)
        voice = Voice(self.vocabulary, template and ChatTemplate(template, tokens or {}))
        served = Settings(model="scripted", **settings)
        self.backend = Backend.of(self.engine, self.vocabulary, served, time.monotonic)
        self.front = Front(
            self.backend.link,
            self.bridge,
            voice,
            served,
            time.monotonic,
            lambda: datetime.now(UTC),
        )
        self.app = application(self.front)

    def close(self) -> None:
        self.front.workers.close()
        self.backend.close()
        assert not self.bridge._boxes, "requests that nobody waits for are still expected"

    def run(self, work):
        """What `work(client)` comes to on a loop of its own."""

        async def main():
            self.bridge.bind(asyncio.get_running_loop())
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://front") as client:
                return await work(client)

        return asyncio.run(main())

    def post(self, path: str, body=None, **options) -> httpx.Response:
        """The response to one request."""
        given = {"json": body} if body is not None else {}
        return self.run(lambda client: client.post(path, **given, **options))

    def get(self, path: str, **options) -> httpx.Response:
        return self.run(lambda client: client.get(path, **options))

    def complete(self, prompt, **fields):
        """The body of a completion."""
        body = {"prompt": prompt, "temperature": 0, **fields}
        response = self.post("/v1/completions", body)
        assert response.status_code == 200, response.text
        return response.json()

    def chat(self, content="hi", **fields):
        """The body of a chat's answer."""
        body = {"messages": [{"role": "user", "content": content}], "temperature": 0, **fields}
        response = self.post("/v1/chat/completions", body)
        assert response.status_code == 200, response.text
        return response.json()

    def stream(self, path: str, **fields):
        """The events of a stream."""
        if path.endswith("chat/completions"):
            fields.setdefault("messages", [{"role": "user", "content": "hi"}])
        response = self.post(path, {"temperature": 0, "stream": True, **fields})
        assert response.status_code == 200, response.text
        return events(response.text)


def events(text: str) -> list[dict]:
    """The JSON of each event; each has data, and the last says that it is done."""
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    blocks = [block for block in blocks if not block.startswith(":")]
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    assert blocks.pop() == "data: [DONE]"
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def told(events: list[dict], index: int = 0) -> tuple[str, str]:
    """The text and the finish of one choice of a stream."""
    text, finishes = "", []
    for event in events:
        for choice in event["choices"]:
            if choice["index"] == index:
                text += choice.get("text") or choice.get("delta", {}).get("content") or ""
                finishes += [choice["finish_reason"]] if choice["finish_reason"] else []
    assert len(finishes) == 1
    return text, finishes[0]


def saying(pieces: list[str | bytes], *, end: bool = True, special=()):
    """A vocabulary and a script that says all of its pieces, whatever the prompt."""
    vocabulary = letters(pieces, special=special)

    def script(_request):
        yield from range(len(pieces))
        yield None if end else RuntimeError("the script is over")

    return vocabulary, script


class Served:
    """A front at a port of this machine, served by a thread."""

    def __init__(self, fronted: Fronted, grace: float = 5.0) -> None:
        self.fronted = fronted
        self._connections: list[socket.socket] = []
        # nothing is encrypted here: the certificates need not be read
        self.client = httpx.Client(timeout=20, verify=False)  # noqa: S501
        place = Place(bound_socket("127.0.0.1", 0), grace)
        # connections take the listener's size: what is not read soon fills it
        place.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        self.url = place.url
        self.port = place.socket.getsockname()[1]
        began = threading.Event()
        self.server = Server(fronted.front, fronted.backend, place, lambda _url: began.set())
        self.thread = threading.Thread(
            target=lambda: asyncio.run(self.server.serve(sockets=[place.socket])), daemon=True
        )
        self.thread.start()
        assert began.wait(10)

    def stop(self) -> None:
        """Tell it to stop, as a signal does."""
        self.server.handle_exit(signal.SIGTERM, None)

    def close(self) -> None:
        """Stop at once."""
        self.stop()
        self.stop()
        self.client.close()
        for connection in self._connections:
            connection.close()
        self.thread.join(20)
        assert not self.thread.is_alive()

    def send(self, data: bytes, *, receive_buffer: int | None = None) -> socket.socket:
        """A connection over which that was sent."""
        connection = socket.socket()
        self._connections.append(connection)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(data)
        return connection

    def ask(self, path: str, body: dict, **options) -> socket.socket:
        """A connection over which a request was sent."""
        return self.send(request(path, json.dumps(body).encode()), **options)

    def until(self, condition, seconds: float = 5.0) -> float:
        """How long it took for a condition to hold."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < seconds, "it never came to that"
            time.sleep(0.005)
        return time.monotonic() - began


def request(path: str, body: bytes, *headers: str) -> bytes:
    """The bytes of a request."""
    lines = [
        f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json",
        f"content-length: {len(body)}", *headers, "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + body


def read_all(connection: socket.socket) -> bytes:
    """Whatever comes until the other side closes."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received
