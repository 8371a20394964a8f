"""Where fronts meet the engine, in its process: requests go in, each event to whoever asked."""

import asyncio
import logging
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from bedstone.errors import BedstoneError, DeviceError
from bedstone.serve.link.channel import Channel
from bedstone.serve.link.crossing import Crossing
from bedstone.serve.link.link import Sight
from bedstone.serve.link.local import LocalLink
from bedstone.serve.link.messages import (
    ENCODER,
    FROM_FRONT,
    Cancel,
    Count,
    FromEngine,
    Look,
    Ready,
    Refused,
    Seen,
    State,
    Submit,
    Taken,
    Told,
)
from bedstone.serve.link.samples import Samples, added
from bedstone.serve.requests import Event, Finished

MOST_WAITING = 64 << 20
"""Bytes that a front may leave untaken; one that leaves more has stopped, and is cut off."""

LOG = logging.getLogger("bedstone.serve")


class Hub(Crossing):
    """The fronts of a server and their requests.

    `deliver` is the engine's; all else happens on the loop it is bound to.
    """

    def __init__(self) -> None:
        self.desks: set[Desk] = set()
        self.asked_by: dict[str, Desk] = {}
        self.state = State()
        self._gone: Samples = {}

    def become(self, state: State) -> None:
        """Tell every front how the server is."""
        self.state = state
        for desk in self.desks:
            desk.tell(state)

    def fail(self, message: str) -> None:
        """The engine's device has failed: it answers nothing any more."""
        if not self.state.failed:
            LOG.critical("the device failed: %s", message)
            self.become(replace(self.state, failed=True))

    def samples_but(self, one: "Desk") -> Samples:
        """What the meters of all fronts but one hold together, of those that have gone too."""
        return added([self._gone, *(desk.samples for desk in self.desks if desk is not one)])

    def drop(self, desk: "Desk") -> None:
        """A front has gone: what it counted stays counted."""
        self.desks.discard(desk)
        self._gone = added([self._gone, desk.samples])

    def hand_out(self, events: Sequence[Event]) -> None:
        """Tell each front what is its requests', on the loop."""
        lots: defaultdict[Desk, list[Event]] = defaultdict(list)
        asked_by = self.asked_by
        for event in events:
            desk = asked_by.get(event.request)
            if desk is not None:
                lots[desk].append(event)
                if isinstance(event, Finished):
                    del asked_by[event.request]
        for desk, lot in lots.items():
            desk.tell(Told(lot))


class Desk:
    """One front as the hub knows it; `ready` is called when it listens, `lost` when it has gone."""

    def __init__(
        self, hub: Hub, link: LocalLink, ready: Callable[[], None], lost: Callable[[], None]
    ) -> None:
        self.samples: Samples = {}
        self.channel = Channel(self._take, self._end)
        self._hub = hub
        self._link = link
        self._ready = ready
        self._lost = lost
        self._submitting: dict[str, asyncio.Task[None]] = {}
        hub.desks.add(self)

    async def open(self, made: socket.socket, opening: bytes) -> None:
        """Begin over a connected socket, with a first message, and how the server is."""
        await self.channel.run(made)
        self.channel.send(opening)
        self.tell(self._hub.state)

    def tell(self, message: FromEngine) -> None:
        """Send a message; a front that takes none any more is cut off."""
        self.channel.send(ENCODER.encode(message))
        if self.channel.waiting > MOST_WAITING:
            LOG.error("a front leaves %d bytes untaken: it is cut off", self.channel.waiting)
            self.channel.abort()

    def _take(self, frame: bytes) -> None:
        """A message of the front has come."""
        message = FROM_FRONT.decode(frame)
        match message:
            case Submit():
                self._submit(message)
            case Cancel():
                self._cancel(message.requests)
            case Look():
                sight = Sight(self._link.stats(), self._hub.samples_but(self))
                self.tell(Seen(message.number, sight))
            case Count():
                self.samples = message.samples
            case Ready():
                self._ready()

    def _submit(self, message: Submit) -> None:
        names = [name for ask in message.asks for name in ask.requests]
        task = asyncio.ensure_future(self._submitted(message, names))
        self._submitting.update(dict.fromkeys(names, task))
        # a task that is cancelled before it begins runs none of its own
        task.add_done_callback(lambda _: self._done(names))

    def _done(self, names: Iterable[str]) -> None:
        for name in names:
            del self._submitting[name]

    async def _submitted(self, message: Submit, names: Sequence[str]) -> None:
        """Have it taken, and answer."""
        asked_by = self._hub.asked_by
        answer: Taken | Refused | None = None
        try:
            # the first event may come before this goes on
            asked_by.update(dict.fromkeys(names, self))
            await self._link.submit(message.asks, message.guide)
            answer = Taken(message.number)
        except Exception as error:  # the front is told, and its client
            answer = Refused.of(message.number, error)
            if isinstance(error, DeviceError):
                self._hub.fail(str(error))
            elif not isinstance(error, BedstoneError):
                LOG.exception("what a front asked for failed")
        finally:
            if not isinstance(answer, Taken):
                for name in names:
                    del asked_by[name]
        self.tell(answer)

    def _cancel(self, requests: Iterable[str]) -> None:
        """End what is under way, and take what was not taken yet no more."""
        for request in requests:
            task = self._submitting.get(request)
            if task is not None:
                task.cancel()
        self._link.cancel([each for each in requests if self._hub.asked_by.get(each) is self])

    def _end(self) -> None:
        """The front has gone, and nobody waits for its requests."""
        self._cancel([name for name, desk in self._hub.asked_by.items() if desk is self])
        self._hub.drop(self)
        self._lost()
