"""Events from the engine's thread to a loop."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

from bedstone.serve.requests import Event


class Crossing(ABC):
    """Takes events on the engine's thread and hands them out on the loop it is bound to."""

    _loop: asyncio.AbstractEventLoop | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand events out on this loop."""
        self._loop = loop

    def deliver(self, events: Sequence[Event]) -> None:
        """Take a step's events, on the engine's thread; all of them cross at once."""
        if self._loop is not None:
            # a loop that has closed has nobody left to tell
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.hand_out, events)

    @abstractmethod
    def hand_out(self, events: Sequence[Event]) -> None:
        """Take a step's events, on the loop."""
