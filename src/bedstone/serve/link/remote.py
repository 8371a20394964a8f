"""An engine in another process."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

from bedstone.serve.link.link import Ask, Guide, Sight
from bedstone.serve.link.messages import (
    ENCODER,
    FROM_ENGINE,
    Cancel,
    Count,
    FromFront,
    Look,
    Ready,
    Refused,
    Seen,
    State,
    Submit,
    Taken,
    Told,
)
from bedstone.serve.link.samples import Samples
from bedstone.serve.requests import Event, Limits


class RemoteLink:
    """Asks through `send`, which is to be set, and is told by `take`, on the front's loop.

    Events go to `deliver`; what becomes of the server to `told`.
    """

    def __init__(
        self,
        limits: Limits,
        deliver: Callable[[Sequence[Event]], None],
        told: Callable[[State], None],
    ) -> None:
        self.send: Callable[[bytes], None]
        self._limits = limits
        self._deliver = deliver
        self._told = told
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Taken | Refused | Seen]] = {}

    @property
    def limits(self) -> Limits:
        """What the engine can take."""
        return self._limits

    async def submit(self, asks: Sequence[Ask], guide: Guide | None = None) -> None:
        """Have all of them taken, or none; all answers are held to the guide.

        Raises `BedstoneError`: the engine's own, or the guide is none, or takes too long to make.
        """
        number = next(self._numbers)
        try:
            answer = await self._answer(number, Submit(number, list(asks), guide))
        except asyncio.CancelledError:
            self.cancel([name for ask in asks for name in ask.requests])
            raise
        if isinstance(answer, Refused):
            raise answer.error

    def cancel(self, requests: Sequence[str]) -> None:
        """End requests at the next step; those that are over, or unknown, are left alone."""
        self._send(Cancel(list(requests)))

    async def look(self) -> Sight:
        """What there is to see."""
        number = next(self._numbers)
        answer = await self._answer(number, Look(number))
        if not isinstance(answer, Seen):
            raise TypeError(f"asked for a look and was told {answer}")
        return answer.sight

    def count(self, samples: Samples) -> None:
        """Say what the front's meters hold."""
        self._send(Count(samples))

    def ready(self) -> None:
        """Say that the front listens."""
        self._send(Ready())

    def take(self, frame: bytes) -> None:
        """A message of the engine's process has come."""
        message = FROM_ENGINE.decode(frame)
        if isinstance(message, Told):
            self._deliver(message.events)
        elif isinstance(message, State):
            self._told(message)
        else:
            future = self._waiting.get(message.number)
            # whoever asked may have gone
            if future is not None and not future.done():
                future.set_result(message)

    async def _answer(self, number: int, message: FromFront) -> Taken | Refused | Seen:
        future: asyncio.Future[Taken | Refused | Seen]
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._send(message)
            return await future
        finally:
            del self._waiting[number]

    def _send(self, message: FromFront) -> None:
        self.send(ENCODER.encode(message))
