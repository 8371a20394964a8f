"""HTTP whose headers come in time, and whose readers take what they asked for."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""How long a connection may take for a request's line and headers, or wait to begin its first."""


def protocol(write_seconds: float) -> type[H11Protocol]:
    """The protocol with that long for a reader whose buffer is full."""
    return type("Protocol", (_Protocol,), {"write_seconds": write_seconds})


class _Protocol(H11Protocol):
    write_seconds: ClassVar[float]

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*args, **options)
        self._cuts: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._give("header", HEADER_SECONDS)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # there is none before the first request, whatever its type says
        cycle = getattr(self, "cycle", None)
        if cycle is None or cycle.response_complete:
            self._give("header", HEADER_SECONDS)
        else:
            self._spare("header")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._give("reader", self.write_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._spare("reader")

    def connection_lost(self, exc: Exception | None) -> None:
        for name in tuple(self._cuts):
            self._spare(name)
        super().connection_lost(exc)

    def _give(self, name: str, seconds: float) -> None:
        if name not in self._cuts:
            self._cuts[name] = self.loop.call_later(seconds, self.transport.abort)

    def _spare(self, name: str) -> None:
        timer = self._cuts.pop(name, None)
        if timer is not None:
            timer.cancel()
