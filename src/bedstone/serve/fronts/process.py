"""A front's process: `python -m bedstone.serve.fronts.process CHANNEL LISTENER`, two sockets.

It ends with the process that started it, whichever way that ends.
"""

import asyncio
import os
import signal
import socket
import sys
from datetime import UTC, datetime
from time import monotonic
from types import FrameType

from bedstone.serve.fronts.opening import Opening, parse_opening
from bedstone.serve.http.bridge import Bridge
from bedstone.serve.http.front import Front
from bedstone.serve.http.server import FrontServer
from bedstone.serve.link.channel import Channel, ClosedError, receive_frame
from bedstone.serve.link.messages import State
from bedstone.serve.link.remote import RemoteLink
from bedstone.serve.log import write_log

COUNT_SECONDS = 0.25
"""How old what other fronts show of this one's meters may be."""


class _Server(FrontServer):
    """A front that stops when the engine's process says so."""

    def handle_exit(self, _sig: int, _frame: FrameType | None) -> None:
        """Nothing: the signal is for the engine's process, which has the last word."""


class _Process:
    """A front, its server and its way to the engine."""

    def __init__(self, opening: Opening) -> None:
        self._bridge = Bridge()
        self._link = RemoteLink(opening.limits, self._bridge.hand_out, self._told)
        self._channel = Channel(self._link.take, _end)
        self._link.send = self._channel.send
        voice, settings = opening.voice, opening.settings
        self._front = Front(self._link, self._bridge, voice, settings, monotonic, _local_now)
        self._front.created = opening.created
        self._front.began -= opening.age
        self._server = _Server(self._front, self._link.ready, at_once=1)

    async def serve(self, made: socket.socket, listener: socket.socket) -> None:
        """Answer until there is no more to tell."""
        await self._channel.run(made)
        counting = asyncio.ensure_future(self._count())
        await self._server.serve(sockets=[listener])
        counting.cancel()
        self._front.workers.close()

    def _told(self, state: State) -> None:
        self._front.draining = state.draining
        self._front.failed = self._front.failed or state.failed
        self._server.should_exit = state.over

    async def _count(self) -> None:
        """Tell what the meters hold whenever it is something else."""
        told = self._front.meters.samples()
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            samples = self._front.meters.samples()
            if samples != told:
                told = samples
                self._link.count(samples)


def main(channel: int, listener: int) -> None:
    """Be a front, over two sockets that were inherited."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    made = socket.socket(fileno=channel)
    try:
        opening = parse_opening(receive_frame(made))
    except ClosedError:
        return
    write_log(opening.settings.heard)
    asyncio.run(_Process(opening).serve(made, socket.socket(fileno=listener)))


def _end() -> None:
    """The engine's process is gone: nothing that is under way can be finished."""
    os._exit(1)


def _local_now() -> datetime:
    return datetime.now(UTC).astimezone()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
