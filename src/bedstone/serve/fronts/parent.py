"""The engine's process where fronts have their own: it starts them, and again when one dies."""

import asyncio
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from time import monotonic

from bedstone.errors import BedstoneError
from bedstone.serve.fronts.opening import Opening, emit_opening
from bedstone.serve.http.backend import Backend
from bedstone.serve.http.server import LAST_SECONDS, Place
from bedstone.serve.link.hub import Desk, Hub
from bedstone.spec.frozen import Frozen

MODULE = "bedstone.serve.fronts.process"
LEAST_DELAY, MOST_DELAY = 0.1, 10.0
"""Seconds until a front that died is started again: twice as many each time that it did soon."""
SPARE_SECONDS = 5.0
"""How much longer than its last answers a front may take to end."""

END_SECONDS = 1.0
"""How long a front has to end that has nothing to tell any more."""

LOG = logging.getLogger("bedstone.serve")


class Fronts(Frozen):
    """What so many fronts are started with: the engine's side, and what each has to know."""

    backend: Backend
    hub: Hub
    opening: Opening
    count: int


def serve_fronts(fronts: Fronts, place: Place, ready: Callable[[str], None]) -> None:
    """Have fronts answer until told to stop, twice to stop at once.

    `ready` is called with the URL once all of them listen. The engine is closed by the end, and no
    front is left.

    Raises `BedstoneError`: one of them ended before it listened.
    """
    try:
        asyncio.run(_Server(fronts, place).run(ready))
    finally:
        fronts.backend.close()


class _Server:
    """The fronts and the end of them all."""

    def __init__(self, fronts: Fronts, place: Place) -> None:
        self._fronts = fronts
        self._place = place
        self._stop, self._now = asyncio.Event(), asyncio.Event()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Start, wait for signals, end."""
        loop = asyncio.get_running_loop()
        self._fronts.hub.bind(loop)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled)
        listener, count = self._place.socket, self._fronts.count
        kept = [_Front(self._fronts, listener, self._stop) for _ in range(count)]
        keeping = [asyncio.ensure_future(front.keep()) for front in kept]
        try:
            if await _unless(self._stop, asyncio.gather(*(front.listens for front in kept))):
                ready(self._place.url)
                await self._stop.wait()
                await self._drain(keeping)
        finally:
            for each in keeping:
                each.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)

    def _signalled(self) -> None:
        """The first signal begins the end, another makes it come at once."""
        (self._now if self._stop.is_set() else self._stop).set()

    async def _drain(self, keeping: "list[asyncio.Task[None]]") -> None:
        """Let the engine finish what it has, then the fronts what they have to tell of it."""
        hub, close = self._fronts.hub, self._fronts.backend.engine.close
        hub.become(replace(hub.state, draining=True))
        closed = asyncio.to_thread(close, self._place.grace)
        if not await _unless(self._now, closed):
            await asyncio.to_thread(close, 0)
            return
        hub.become(replace(hub.state, over=True))
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS + SPARE_SECONDS):
                await _unless(self._now, asyncio.wait(keeping))


class _Front:
    """One of the fronts; `listens` comes to be when it does for the first time."""

    def __init__(self, fronts: Fronts, listener: socket.socket, stop: asyncio.Event) -> None:
        self.listens: asyncio.Future[None] = asyncio.Future()
        self._fronts = fronts
        self._listener = listener
        self._stop = stop
        self._began = monotonic()

    async def keep(self) -> None:
        """Run it, and again when it ends, until the server does."""
        delay = LEAST_DELAY
        while True:
            began = monotonic()
            try:
                told = f"a front ended with code {await self._run()}"
            except OSError as error:
                told = f"a front cannot be started: {error}"
            if self._stop.is_set():
                return
            if not self.listens.done():
                self.listens.set_exception(BedstoneError(f"{told} before it listened"))
                return
            delay = min(2 * delay, MOST_DELAY) if monotonic() - began < MOST_DELAY else LEAST_DELAY
            LOG.error("%s: it is started again", told)
            await _unless(self._stop, asyncio.sleep(delay))

    async def _run(self) -> int:
        """Its exit code, once it has ended or is of no use any more."""
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as held:
            held.enter_context(ours)
            sockets = (theirs.fileno(), self._listener.fileno())
            process = subprocess.Popen(  # noqa: S603 - this interpreter, and no word from elsewhere
                [sys.executable, "-P", "-m", MODULE, *map(str, sockets)],
                stdin=subprocess.DEVNULL,
                pass_fds=sockets,
                # a key that interrupts the terminal's processes is for this one alone
                process_group=0,
            )
            held.pop_all()
        gone = asyncio.Event()
        desk = Desk(self._fronts.hub, self._fronts.backend.link, self._listening, gone.set)
        try:
            opening = replace(self._fronts.opening, age=monotonic() - self._began)
            await desk.open(ours, emit_opening(opening))
            await gone.wait()
        finally:
            # a front ends once this is closed
            desk.channel.abort()
            code = await asyncio.to_thread(_ended, process)
        return code

    def _listening(self) -> None:
        if not self.listens.done():
            self.listens.set_result(None)


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """The exit code of a process that is to end, killed if it does not."""
    try:
        return process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


async def _unless(event: asyncio.Event, work: Awaitable[object]) -> bool:
    """Whether work came to its end before an event did; it is given up otherwise."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
