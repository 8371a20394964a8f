"""A front at a socket: connections that dawdle are cut, and a signal lets answers finish."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

import uvicorn

from bedstone.errors import CallerError
from bedstone.serve.http.app import application
from bedstone.serve.http.front import Front
from bedstone.serve.http.protocol import protocol
from bedstone.spec.frozen import Frozen

HEADER_BYTES = 32 << 10
"""Bytes of a request's line and headers."""
KEPT_SECONDS = 30
"""How long a connection without requests stays open."""
LAST_SECONDS = 5
"""How long answers that were cut short have to reach their clients."""
MOST_CONNECTIONS = 900
"""Fewer than the files that a process may usually have open."""


class Place(Frozen):
    """Where a server listens, and how long answers have to finish after it was told to stop."""

    socket: socket.socket
    grace: float = 30.0

    @property
    def url(self) -> str:
        """How to reach it."""
        host, port = self.socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket of that address which does not listen yet.

    Raises `CallerError`: the address is none of this machine's, or in use.
    """
    with ExitStack() as held:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            made = held.enter_context(socket.socket(family, kind, protocol))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError as error:
            raise CallerError(f"`{host}` port {port}: {error.strerror or error}") from error
        held.pop_all()
    return made


def serve(front: Front, place: Place, ready: Callable[[str], None]) -> None:
    """Answer until told to stop, twice to stop at once; `ready` is called with the URL.

    The engine is closed by then.
    """
    server = Server(front, place, ready)
    try:
        asyncio.run(server.serve(sockets=[place.socket]))
    finally:
        front.workers.close()
        front.engine.close(0)


class Server(uvicorn.Server):
    """Told to stop, it refuses what is new and lets the engine finish what it has."""

    def __init__(self, front: Front, place: Place, ready: Callable[[str], None]) -> None:
        super().__init__(_config(front))
        self._front = front
        self._place = place
        self._ready = ready
        self._closing: threading.Thread | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._front.bridge.bind(asyncio.get_running_loop())
        await super().startup(sockets)
        self._ready(self._place.url)

    def handle_exit(self, _sig: int, _frame: FrameType | None) -> None:
        """The first signal begins the end, another makes it come at once."""
        if self._closing is not None:
            self.should_exit = self.force_exit = True
            return
        self._front.draining = True
        close = self._front.engine.close
        self._closing = threading.Thread(target=close, args=(self._place.grace,), daemon=True)
        self._closing.start()

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop listening: once the engine has no more to tell."""
        closed = self._closing is not None and not self._closing.is_alive()
        self.should_exit = self.should_exit or closed
        return await super().on_tick(counter)


def _config(front: Front) -> uvicorn.Config:
    return uvicorn.Config(
        application(front),
        http=protocol(front.settings.write_seconds),
        ws="none",
        lifespan="off",
        log_config=None,
        # whoever sends what is no HTTP is answered; a line for each would be theirs to write
        log_level="error",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=HEADER_BYTES,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEPT_SECONDS,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
