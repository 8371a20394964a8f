"""Events from the engine's thread to whoever waits for them on the loop."""

import asyncio
from collections.abc import Iterable, Sequence

from bedstone.serve.link.crossing import Crossing
from bedstone.serve.requests import Event, Finished


class OverflowedError(Exception):
    """Nobody has taken an answer's events for too long."""


class Box:
    """Events of one call's requests, in order; no more than `limit` wait."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._events: list[Event] = []
        self._filled = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event."""
        # one more than may wait is kept: it tells `take` that there were too many
        if len(self._events) <= self._limit:
            self._events.append(event)
        self._filled.set()

    def nudge(self) -> None:
        """Let whoever waits go on, with nothing if nothing came."""
        self._filled.set()

    async def take(self) -> list[Event]:
        """All that wait, once something does or somebody nudges.

        Raises `OverflowedError`: there were more than may wait.
        """
        await self._filled.wait()
        self._filled.clear()
        events, self._events = self._events, []
        if len(events) > self._limit:
            raise OverflowedError
        return events


class Bridge(Crossing):
    """Hands each event to the box of its request; all of a step cross the threads at once."""

    def __init__(self) -> None:
        self._boxes: dict[str, Box] = {}

    def expect(self, request: str, box: Box) -> None:
        """Put a request's events into a box from now on."""
        self._boxes[request] = box

    def forget(self, requests: Iterable[str]) -> None:
        """Drop whatever still comes of some requests."""
        for request in requests:
            self._boxes.pop(request, None)

    def hand_out(self, events: Sequence[Event]) -> None:
        """Take a step's events, on the loop."""
        for event in events:
            box = self._boxes.get(event.request)
            if box is None:
                continue
            box.put(event)
            if isinstance(event, Finished):
                del self._boxes[event.request]
