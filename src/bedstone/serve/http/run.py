"""The choices of one call, from their requests to their last token."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bedstone.errors import BedstoneError
from bedstone.serve.http.bridge import Box, Bridge, OverflowedError
from bedstone.serve.http.meters import Meters
from bedstone.serve.http.refusal import Refusal, refusal
from bedstone.serve.link.link import Ask, Guide, Link
from bedstone.serve.requests import Event, Finished, Reason, Token

ENDS: Mapping[Reason, tuple[int, str, str]] = {
    "cancelled": (503, "the server is shutting down", "shutting_down"),
    "deadline": (504, "the answer took longer than this server allows", "deadline"),
    "error": (500, "the engine failed", "engine"),
}
"""Ends of a request that are no end of an answer: status, message, code."""

Clock = Callable[[], float]


class Taker(Protocol):
    """Whatever becomes of the tokens of one request."""

    @property
    def over(self) -> bool:
        """Whether it needs no more of them; its end is told all the same."""

    def token(self, token: Token) -> None:
        """Take the next."""

    def end(self, finished: Finished) -> None:
        """There are no more."""


class Run:
    """Requests under way together. `close` it whatever happens: what still runs is cancelled.

    Without `meters` nobody counts what it does.
    """

    def __init__(
        self, link: Link, bridge: Bridge, meters: Meters | None, clock: Clock, waiting: int
    ) -> None:
        self._link = link
        self._bridge = bridge
        self._meters = meters
        self._clock = clock
        self._box = Box(waiting)
        self._takers: dict[str, Taker] = {}
        self._last: dict[str, float] = {}
        self._began = clock()

    @property
    def live(self) -> int:
        """How many have not ended."""
        return len(self._takers)

    async def start(
        self, asks: Sequence[Ask], takers: Mapping[str, Taker], guide: Guide | None = None
    ) -> None:
        """Submit all of them, or none, held to a guide; each request's events go to its taker.

        Raises `Refusal`: the engine takes one of them not.
        """
        self._began = self._clock()
        for request, taker in takers.items():
            self._bridge.expect(request, self._box)
            self._takers[request] = taker
        try:
            await self._link.submit(asks, guide)
        except BedstoneError as error:
            self.close()
            raise refusal(error) from error

    def nudge(self) -> None:
        """Let `more` return, with False if nothing came."""
        self._box.nudge()

    async def more(self) -> bool:
        """Hand on what has come, once something has.

        Raises `Refusal`: a request ended in another way than its answer, or its events piled up.
        """
        try:
            events = await self._box.take()
        except OverflowedError:
            raise Refusal(503, "the answer was not taken in time", code="slow_reader") from None
        now = self._clock()
        for event in events:
            self._hand_on(event, now)
        return bool(events)

    def close(self) -> None:
        """Cancel what still runs."""
        live = tuple(self._takers)
        self._takers.clear()
        self._bridge.forget(live)
        if live:
            self._link.cancel(live)

    def abort(self) -> None:
        """Close it because its client went away."""
        if self._meters is not None:
            self._meters.aborts.inc(self.live)
        self.close()

    def _hand_on(self, event: Event, now: float) -> None:
        taker = self._takers.get(event.request)
        if taker is None:
            return
        if isinstance(event, Token):
            if not taker.over:
                self._token(event, taker, now)
            return
        self._done(event.request)
        if event.reason in ENDS and not taker.over:
            status, message, code = ENDS[event.reason]
            raise Refusal(status, event.message or message, code=code)
        taker.end(event)

    def _token(self, token: Token, taker: Taker, now: float) -> None:
        self._time(token.request, now)
        taker.token(token)
        if taker.over:
            # its end comes all the same, and says how much of the prompt was cached
            self._link.cancel((token.request,))

    def _done(self, request: str) -> None:
        del self._takers[request]
        self._bridge.forget((request,))
        if self._meters is not None:
            self._meters.whole.observe(self._clock() - self._began)

    def _time(self, request: str, now: float) -> None:
        if self._meters is None:
            return
        last = self._last.get(request)
        if last is None:
            self._meters.first.observe(now - self._began)
        else:
            self._meters.between.observe(now - last)
        self._last[request] = now
