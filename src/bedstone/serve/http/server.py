"""A front at a socket: connections that dawdle are cut."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack

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
BACKLOG = 2048
"""Connections that wait to be taken."""


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


class FrontServer(uvicorn.Server):
    """A front that answers at a socket; `ready` is called once it does.

    `at_once` is how many connections it takes before it looks what else there is to do; where
    several fronts share the socket, one that takes few leaves the next to whoever is idle.
    """

    def __init__(self, front: Front, ready: Callable[[], None], at_once: int = BACKLOG) -> None:
        super().__init__(_config(front, at_once))
        self._bridge = front.bridge
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._bridge.bind(asyncio.get_running_loop())
        await super().startup(sockets)
        for each in sockets or ():
            # asyncio lets no more wait than it takes at a time
            each.listen(BACKLOG)
        self._ready()


def _config(front: Front, backlog: int) -> uvicorn.Config:
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
        backlog=backlog,
        timeout_keep_alive=KEPT_SECONDS,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
