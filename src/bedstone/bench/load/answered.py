"""When answers came, in few numbers. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

QUANTILES = (0.5, 0.9, 0.99)
_TICK = 1e-9


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request: seconds on one clock, `pieces` when each piece of text arrived.

    `tokens` is what the server counted, or the pieces where it counted none; `fault` says what
    went wrong, None where the answer came to its end.
    """

    ask: int
    sent: float
    pieces: tuple[float, ...]
    ended: float
    tokens: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    fault: str | None = None

    @property
    def first(self) -> float | None:
        """Seconds to the first piece."""
        return self.pieces[0] - self.sent if self.pieces else None

    @property
    def each(self) -> float | None:
        """Seconds a token after the first."""
        if len(self.pieces) < 2 or self.tokens < 2:
            return None
        return (self.pieces[-1] - self.pieces[0]) / (self.tokens - 1)

    @property
    def gaps(self) -> tuple[float, ...]:
        """Seconds between pieces."""
        return tuple(b - a for a, b in zip(self.pieces, self.pieces[1:], strict=False))


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Half, nine tenths and 99 of 100 are no larger than these; `most` is the largest."""

    p50: float
    p90: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Quantiles | None":
        """Those of values, each one of them (the nearest rank); None of none."""
        if not values:
            return None
        ordered = sorted(values)
        p50, p90, p99 = (ordered[math.ceil(q * len(ordered)) - 1] for q in QUANTILES)
        return cls(p50, p90, p99, ordered[-1])


@dataclass(frozen=True, slots=True)
class Summary:
    """One server under a load, of all rounds together. Seconds.

    A round lasts from its first request to its last end; `rates` are its tokens a second. `first`
    is to a request's first piece, `each` its mean a further token, `gap` between any two pieces,
    `whole` to its end.
    """

    requests: int
    faults: dict[str, int]
    seconds: float
    tokens: int
    prompt_tokens: int
    cached_tokens: int
    tokens_per_second: float
    requests_per_second: float
    rates: tuple[float, ...]
    first: Quantiles | None
    each: Quantiles | None
    gap: Quantiles | None
    whole: Quantiles | None

    @classmethod
    def of(cls, rounds: Sequence[Sequence[Answer]]) -> "Summary":
        """The summary of rounds of one answer at least; of one with a fault only that counts."""
        answers = [answer for taken in rounds for answer in taken]
        good = [answer for answer in answers if answer.fault is None]
        spans = [_lasted(taken) for taken in rounds]
        tokens = [_made(taken) for taken in rounds]
        return cls(
            requests=len(answers),
            faults=dict(Counter(a.fault for a in answers if a.fault is not None)),
            seconds=sum(spans),
            tokens=sum(tokens),
            prompt_tokens=sum(a.prompt_tokens or 0 for a in good),
            cached_tokens=sum(a.cached_tokens or 0 for a in good),
            tokens_per_second=sum(tokens) / sum(spans),
            requests_per_second=len(good) / sum(spans),
            rates=tuple(made / span for made, span in zip(tokens, spans, strict=True)),
            first=Quantiles.of([a.first for a in good if a.first is not None]),
            each=Quantiles.of([a.each for a in good if a.each is not None]),
            gap=Quantiles.of([gap for a in good for gap in a.gaps]),
            whole=Quantiles.of([a.ended - a.sent for a in good]),
        )

    def json(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)


def _lasted(answers: Sequence[Answer]) -> float:
    return max(max(a.ended for a in answers) - min(a.sent for a in answers), _TICK)


def _made(answers: Sequence[Answer]) -> int:
    return sum(answer.tokens for answer in answers if answer.fault is None)
