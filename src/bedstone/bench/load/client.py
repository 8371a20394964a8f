"""Requests sent to a server over HTTP, streamed, with the time each piece came."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import httpx

from bedstone.bench.load.answered import Answer
from bedstone.bench.load.asked import Ask
from bedstone.errors import CallerError

_PATIENCE = httpx.Timeout(600.0, connect=10.0)


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server answers, which of its models is asked, and the key it wants."""

    url: str
    model: str
    key: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {} if self.key is None else {"authorization": f"Bearer {self.key}"}


async def first_model(url: str, key: str | None) -> Server:
    """The server at `url` with the first model it lists.

    Raises `CallerError`: nothing there answers as an OpenAI server does.
    """
    server = Server(url.rstrip("/"), "", key)
    try:
        async with httpx.AsyncClient(timeout=_PATIENCE, headers=server.headers) as client:
            found = await client.get(f"{server.url}/v1/models")
            found.raise_for_status()
            return Server(server.url, str(found.json()["data"][0]["id"]), key)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, TypeError) as error:
        told = next(iter(str(error).splitlines()), type(error).__name__)
        raise CallerError(f"`{url}` lists no models at `/v1/models`: {told}") from error


async def drive(
    server: Server, asks: Sequence[Ask], clients: int, done: Callable[[int], None]
) -> list[Answer]:
    """Send every request, each when it is due or as soon as one of `clients` is free; the answers.

    `done` is told how many have ended.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
    answers: list[Answer] = []
    async with httpx.AsyncClient(
        timeout=_PATIENCE, limits=limits, headers=server.headers
    ) as client:
        begun = perf_counter()
        queue = iter(enumerate(asks))

        async def one(index: int, ask: Ask) -> None:
            answers.append(await _answer(client, server, index, ask))
            done(len(answers))

        async def worker() -> None:
            for index, ask in queue:
                await one(index, ask)

        async def arriving(index: int, ask: Ask) -> None:
            await asyncio.sleep(begun + (ask.at or 0.0) - perf_counter())
            await one(index, ask)

        if any(ask.at is not None for ask in asks):
            await asyncio.gather(*(arriving(*each) for each in queue))
        else:
            await asyncio.gather(*(worker() for _ in range(clients)))
    return sorted(answers, key=lambda answer: answer.ask)


async def _answer(client: httpx.AsyncClient, server: Server, index: int, ask: Ask) -> Answer:
    """Send one request and read its answer to the end; whatever goes wrong is its fault."""
    body: dict[str, Any] = {
        "model": server.model,
        "prompt": ask.prompt,
        "max_tokens": ask.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if ask.ignore_eos:
        body["ignore_eos"] = True
    sent = perf_counter()
    pieces: list[float] = []
    usage: dict[str, Any] = {}
    fault: str | None = None
    try:
        async with client.stream("POST", f"{server.url}/v1/completions", json=body) as reply:
            if reply.status_code != httpx.codes.OK:
                fault = f"status {reply.status_code}"
            else:
                fault = await _read(_events(reply), pieces, usage)
    except httpx.HTTPError as error:
        fault = type(error).__name__
    details = usage.get("prompt_tokens_details") or {}
    return Answer(
        ask=index,
        sent=sent,
        pieces=tuple(pieces),
        ended=perf_counter(),
        tokens=usage.get("completion_tokens", len(pieces)),
        prompt_tokens=usage.get("prompt_tokens"),
        cached_tokens=details.get("cached_tokens"),
        fault=fault,
    )


async def _events(reply: httpx.Response) -> AsyncIterator[str]:
    """The data of each server-sent event."""
    async for line in reply.aiter_lines():
        if line.startswith("data:"):
            yield line[5:].strip()


async def _read(
    events: AsyncIterator[str], pieces: list[float], usage: dict[str, Any]
) -> str | None:
    """Note when each piece of text came, and what the server counted; what was wrong, if anything.

    A stream that just ends, without the closing event, is cut.
    """
    async for data in events:
        if data == "[DONE]":
            return None
        now = perf_counter()
        try:
            event = json.loads(data)
        except ValueError:
            return "no JSON in an event"
        if not isinstance(event, dict) or "error" in event:
            return "an error in the stream"
        if any(choice.get("text") for choice in event.get("choices") or ()):
            pieces.append(now)
        usage.update(event.get("usage") or {})
    return "a stream cut short"
