"""A front in the engine's own process: a signal lets answers finish."""

import asyncio
import threading
from collections.abc import Callable
from types import FrameType

from bedstone.serve.http.backend import Backend
from bedstone.serve.http.front import Front
from bedstone.serve.http.server import FrontServer, Place


def serve(front: Front, backend: Backend, place: Place, ready: Callable[[str], None]) -> None:
    """Answer until told to stop, twice to stop at once; `ready` is called with the URL.

    The engine is closed by then.
    """
    server = Server(front, backend, place, ready)
    try:
        asyncio.run(server.serve(sockets=[place.socket]))
    finally:
        front.workers.close()
        backend.close()


class Server(FrontServer):
    """Told to stop, it refuses what is new and lets the engine finish what it has."""

    def __init__(
        self, front: Front, backend: Backend, place: Place, ready: Callable[[str], None]
    ) -> None:
        super().__init__(front, lambda: ready(place.url))
        self._front = front
        self._engine = backend.engine
        self._grace = place.grace
        self._closing: threading.Thread | None = None

    def handle_exit(self, _sig: int, _frame: FrameType | None) -> None:
        """The first signal begins the end, another makes it come at once."""
        if self._closing is not None:
            self.should_exit = self.force_exit = True
            return
        self._front.draining = True
        close = self._engine.close
        self._closing = threading.Thread(target=close, args=(self._grace,), daemon=True)
        self._closing.start()

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop listening: once the engine has no more to tell."""
        closed = self._closing is not None and not self._closing.is_alive()
        self.should_exit = self.should_exit or closed
        return await super().on_tick(counter)
