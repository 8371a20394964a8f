"""A connection to a server: a request at a time, its answer handed on as it arrives."""

import asyncio
import os
import ssl
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import cast

import h11

from bedstone.bench.load.server import Place
from bedstone.errors import BedstoneError

CONNECT_SECONDS = 10.0
PATIENCE_SECONDS = 600.0
"""How long a server may say nothing."""

Taker = Callable[[bytes, float], None]


class ExchangeError(BedstoneError):
    """A request got no whole answer; the message says why in few words."""


async def connect(place: Place) -> "Connection":
    """A connection to a place.

    Raises `ExchangeError`: nobody answers there.
    """
    loop = asyncio.get_running_loop()
    tls = _trusting() if place.tls else None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            made = await loop.create_connection(Connection, place.name, place.port, ssl=tls)
    except TimeoutError as error:
        raise ExchangeError("no connection in time") from error
    except (OSError, UnicodeError) as error:
        raise ExchangeError(f"no connection: {_told(error)}") from error
    return made[1]


@cache
def _trusting() -> ssl.SSLContext:
    """TLS with whom the system trusts: reading all of those takes a while."""
    return ssl.create_default_context()


def _told(error: OSError | UnicodeError) -> str:
    """What the system says of it; `asyncio` writes the address where the reason should be."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)


class Connection(asyncio.Protocol):
    """Sends requests in turn; `alive` until either side has closed it."""

    def __init__(self) -> None:
        self.alive = False
        self._http = h11.Connection(h11.CLIENT)
        self._transport: asyncio.Transport | None = None
        self._take: Taker = _drop
        self._ended: asyncio.Future[int] | None = None
        self._status = 0
        self._heard = 0.0

    async def exchange(self, request: h11.Request, body: bytes, take: Taker) -> int:
        """The status of the answer, once its body has been handed to `take` with its times.

        Raises `ExchangeError`: the answer did not come to its end.
        """
        loop = asyncio.get_running_loop()
        self._take, self._ended, self._heard = take, loop.create_future(), perf_counter()
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        sent = b"".join(self._http.send(part) or b"" for part in parts)
        if self._transport is None or not self.alive:
            raise ExchangeError("a connection cut")
        self._transport.write(sent)
        watch = loop.call_later(PATIENCE_SECONDS, self._watch)
        try:
            return await self._ended
        finally:
            watch.cancel()
            if not self._ended.done() or self._ended.cancelled():
                self.close()

    def close(self) -> None:
        """End it."""
        self.alive = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As `asyncio.Protocol` says."""
        # a stream of bytes is all that it is made for
        self._transport, self.alive = cast("asyncio.Transport", transport), True

    def data_received(self, data: bytes) -> None:
        """As `asyncio.Protocol` says."""
        now = self._heard = perf_counter()
        try:
            self._http.receive_data(data)
            body, over = self._read()
        except h11.RemoteProtocolError:
            self._fail("a connection cut" if not data else "an answer that is no HTTP")
            return
        if body:
            self._take(body, now)
        if over:
            self._finish()

    def connection_lost(self, _error: Exception | None) -> None:
        """As `asyncio.Protocol` says."""
        self.alive = False
        # the end of an answer whose length nobody told, or one that is cut
        if self._ended is not None and not self._ended.done():
            self.data_received(b"")
        self._fail("a connection cut")

    def _read(self) -> tuple[bytes, bool]:
        """What has come of the body, and whether that was its end."""
        parts = []
        while True:
            event = self._http.next_event()
            if type(event) is h11.Data:
                parts.append(event.data)
            elif type(event) is h11.Response:
                self._status = event.status_code
            elif not isinstance(event, h11.InformationalResponse):
                return b"".join(parts), type(event) is h11.EndOfMessage

    def _finish(self) -> None:
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(self._status)

    def _fail(self, told: str) -> None:
        self.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(ExchangeError(told))

    def _watch(self) -> None:
        """Give up where nothing has come for too long, else look again when that could be."""
        left = self._heard + PATIENCE_SECONDS - perf_counter()
        if left <= 0:
            self._fail(f"nothing for {PATIENCE_SECONDS:.0f} s")
        elif self._ended is not None and not self._ended.done():
            asyncio.get_running_loop().call_later(left, self._watch)


def _drop(_data: bytes, _now: float) -> None:
    """What comes before anything was asked."""
