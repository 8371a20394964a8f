"""How busy the client was: whether a measurement is of the server, or of what measured it. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bedstone.bench.load.answered import Quantiles

MOST_SHARE = 0.8
"""Of a core, of the busiest process: above it the client is likely the bound."""

MOST_LAG = 0.01
"""Seconds, of nine turns in ten: what is later than this is late by the client's own doing."""

_TICK = 1e-9


@dataclass(frozen=True, slots=True)
class Busy:
    """One process in one round: its processor time, how long it ran, how late its loop was."""

    cpu_seconds: float
    seconds: float
    lags: tuple[float, ...]

    @property
    def share(self) -> float:
        """Of a core."""
        return self.cpu_seconds / max(self.seconds, _TICK)


@dataclass(frozen=True, slots=True)
class Client:
    """The client's processes in all rounds. `share` of a core is the busiest one's."""

    processes: int
    cpu_seconds: float
    cpu_seconds_per_token: float | None
    share: float
    lag: Quantiles | None

    @classmethod
    def of(cls, rounds: Sequence[Sequence[Busy]], tokens: int) -> "Client":
        """All of them together; at least one of each."""
        each = [busy for one in rounds for busy in one]
        spent = sum(busy.cpu_seconds for busy in each)
        return cls(
            processes=max(len(one) for one in rounds),
            cpu_seconds=spent,
            cpu_seconds_per_token=spent / tokens if tokens else None,
            share=max(busy.share for busy in each),
            lag=Quantiles.of([lag for busy in each for lag in busy.lags]),
        )

    @property
    def bound(self) -> bool:
        """Whether the client is likely what was measured."""
        return self.share > MOST_SHARE or (self.lag is not None and self.lag.p90 > MOST_LAG)

    def json(self) -> dict[str, Any]:
        """The JSON object."""
        return {**asdict(self), "bound": self.bound}
