"""Requests sent to a server over HTTP, streamed, with the time each piece came."""

import asyncio
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Annotated

import h11
import msgspec

from bedstone.bench.load.answered import Answer
from bedstone.bench.load.busy import Busy
from bedstone.bench.load.connection import Connection, ExchangeError, connect
from bedstone.bench.load.queue import Queue, Queued
from bedstone.bench.load.server import Place, Server, parse_place
from bedstone.bench.load.stream import Stream
from bedstone.errors import CallerError

LAG_SECONDS = 0.02
"""How often the loop's lag is taken."""

_OK = 200


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: Annotated[list[_Model], msgspec.Meta(min_length=1)]


async def first_model(url: str, key: str | None) -> str:
    """The first model that the server at `url` lists.

    Raises `CallerError`: nothing there answers as an OpenAI server does.
    """
    try:
        return await _listed(parse_place(url), key)
    except (ExchangeError, msgspec.MsgspecError) as error:
        raise CallerError(f"`{url}` lists no models at `/v1/models`: {error}") from error


async def _listed(place: Place, key: str | None) -> str:
    """The name of the first model.

    Raises `ExchangeError` or `MsgspecError`: there is no list of any.
    """
    body = bytearray()
    get = h11.Request(method="GET", target=f"{place.path}/v1/models", headers=_head(place, key))
    connection = await connect(place)
    try:
        status = await connection.exchange(get, b"", lambda data, _now: body.extend(data))
    finally:
        connection.close()
    if status != _OK:
        raise ExchangeError(f"status {status}")
    return msgspec.json.decode(bytes(body), type=_Models).data[0].id


class Load:
    """Clients of a server, in one process."""

    def __init__(self, server: Server, queue: Queue, done: Callable[[int], None]) -> None:
        """`done` is told how many requests have ended."""
        self._place = parse_place(server.url)
        self._target = f"{self._place.path}{server.path}"
        self._headers = _head(self._place, server.key)
        self._queue = queue
        self._done = done
        self._free: list[Connection] = []
        self._answers: list[Answer] = []

    async def run(self, clients: int, begin: float) -> tuple[list[Answer], Busy]:
        """The answers as they ended, and how busy this process was with them.

        What is queued is sent from `begin` on, each when it is due or one of `clients` is free.
        """
        await asyncio.sleep(begin - perf_counter())
        lags: list[float] = []
        lagging = asyncio.ensure_future(_lag(lags))
        began, spent = perf_counter(), process_time()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(clients):
                    group.create_task(self._client(begin, group))
        finally:
            lagging.cancel()
            for connection in self._free:
                connection.close()
        busy = Busy(process_time() - spent, perf_counter() - began, tuple(lags))
        return self._answers, busy

    async def _client(self, begin: float, group: asyncio.TaskGroup) -> None:
        """Ask and wait; nobody waits for the answer to what has a time of its own."""
        while (queued := self._queue.next()) is not None:
            if queued.at is None:
                await self._one(queued)
            else:
                await asyncio.sleep(begin + queued.at - perf_counter())
                group.create_task(self._one(queued))

    async def _one(self, queued: Queued) -> None:
        """Send one request and read its answer to the end; whatever goes wrong is its fault."""
        head = [*self._headers, ("content-type", "application/json")]
        head.append(("content-length", str(len(queued.body))))
        request = h11.Request(method="POST", target=self._target, headers=head)
        stream, sent = Stream(), perf_counter()
        try:
            connection = await self._connection()
            status = await connection.exchange(request, queued.body, stream.take)
            self._free.append(connection)
            fault = stream.fault if status == _OK else f"status {status}"
        except ExchangeError as error:
            fault = str(error)
        usage, made = stream.usage, len(stream.pieces)
        self._answers.append(
            Answer(
                ask=queued.ask,
                sent=sent,
                pieces=tuple(stream.pieces),
                ended=perf_counter(),
                tokens=made if usage.completion_tokens is None else usage.completion_tokens,
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                fault=fault,
            )
        )
        self._done(len(self._answers))

    async def _connection(self) -> Connection:
        """One that is free, or a new one."""
        while self._free:
            if (connection := self._free.pop()).alive:
                return connection
        return await connect(self._place)


async def _lag(lags: list[float]) -> None:
    """Note how late the loop comes to what is due."""
    while True:
        due = perf_counter() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        lags.append(perf_counter() - due)


def _head(place: Place, key: str | None) -> list[tuple[str, str]]:
    """What every request carries."""
    bearer = [] if key is None else [("authorization", f"Bearer {key}")]
    return [("host", place.host), ("accept", "*/*"), ("user-agent", "bedstone"), *bearer]
