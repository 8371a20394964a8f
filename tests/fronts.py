"""A front over a scripted engine, called without a socket."""

import asyncio
import json
import time
from datetime import UTC, datetime

import httpx

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.serve.http.app import application
from bedstone.serve.http.bridge import Bridge
from bedstone.serve.http.front import Front, Voice
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
        self.front = Front(
            self.engine,
            self.bridge,
            voice,
            Settings(model="scripted", **settings),
            time.monotonic,
            lambda: datetime.now(UTC),
        )
        self.app = application(self.front)

    def close(self) -> None:
        self.front.workers.close()
        self.engine.close(0)

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
