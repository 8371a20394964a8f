"""What a front asks of an engine, whichever process that is in."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from bedstone.serve.link.samples import Sample
from bedstone.serve.requests import Limits, Sampling, Stats
from bedstone.spec.frozen import Frozen


class Guide(Frozen):
    """What answers are held to, as data.

    `grammar` is one of `llguidance`; `thought` is how many tokens a thought may have, one that is
    open already where `thinking`.
    """

    grammar: str | None = None
    thought: int | None = None
    thinking: bool = False


class Ask(Frozen):
    """A prompt to be continued, once for each of `choices`: a request's id and how it is drawn.

    `forced` are the tokens of answers that have no choice. `seconds` is how long they may take,
    waiting included; the rest is as in `Request`.
    """

    tokens: Sequence[int]
    max_tokens: int
    choices: Sequence[tuple[str, Sampling]]
    stop_ids: Collection[int] = ()
    forced: Sequence[int] = ()
    seconds: float | None = None

    @property
    def requests(self) -> tuple[str, ...]:
        """The ids of its requests."""
        return tuple(name for name, _ in self.choices)


class Sight(Frozen):
    """What the engine has done and holds, and what the meters of all other fronts hold together."""

    stats: Stats
    others: Mapping[str, Sequence[Sample]] = {}


class Link(Protocol):
    """The way to an engine. Called on the front's loop; events come by another way."""

    @property
    def limits(self) -> Limits:
        """What the engine can take."""

    async def submit(self, asks: Sequence[Ask], guide: Guide | None = None) -> None:
        """Have all of them taken, or none; all answers are held to the guide.

        Cancelled, it takes none that were not taken yet.

        Raises `BedstoneError`: the engine's own, or the guide is none, or takes too long to make.
        """

    def cancel(self, requests: Sequence[str]) -> None:
        """End requests at the next step; those that are over, or unknown, are left alone."""

    async def look(self) -> Sight:
        """What there is to see."""
