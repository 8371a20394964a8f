"""Requests that were answered in time: what a server can do that is soon enough. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bedstone.bench.load.answered import Answer
from bedstone.errors import CallerError

_NAMES = ("first", "each", "whole")
_MILLI = 1e-3


@dataclass(frozen=True, slots=True)
class Goal:
    """Seconds that an answer may take, None for any: what the measures of these names are."""

    first: float | None = None
    each: float | None = None
    whole: float | None = None

    def met_by(self, answer: Answer) -> bool:
        """Whether an answer came to its end and kept to all of it.

        What an answer has none of, as one token has no further one, keeps to anything; but for
        its first piece.
        """
        if answer.fault is not None or (self.first is not None and answer.first is None):
            return False
        taken = (answer.first, answer.each, answer.ended - answer.sent)
        most = (self.first, self.each, self.whole)
        return all(t is None or m is None or t <= m for t, m in zip(taken, most, strict=True))


def parse_goal(option: str, text: str) -> Goal:
    """`first=200,each=50` as seconds, given in milliseconds.

    Raises `CallerError`: it is no such list.
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            found[name] = float(value) * _MILLI
        except ValueError:
            found[name] = 0.0
        if name not in _NAMES or not 0 < found[name] < float("inf"):
            raise CallerError(
                f"`{option}` is `{text}`: expected milliseconds, as in first=200,each=50,whole=5000"
            )
    return Goal(**found)


@dataclass(frozen=True, slots=True)
class Goodput:
    """How many requests met a goal, which share [0, 1] of all, and how many a second."""

    goal: Goal
    requests: int
    share: float
    requests_per_second: float

    @classmethod
    def of(cls, goal: Goal, answers: Sequence[Answer], seconds: float) -> "Goodput":
        """That of one answer at least, in so many seconds."""
        met = sum(goal.met_by(answer) for answer in answers)
        return cls(goal, met, met / len(answers), met / seconds)

    def json(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)
