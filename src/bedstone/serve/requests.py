"""What is asked of an engine, and what it tells of each request.

An engine knows tokens only: text, templates and stop strings are its callers' business.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.spec.frozen import Frozen
from bedstone.spec.sampling import Sampling

__all__ = [
    "Constraint",
    "Engine",
    "Event",
    "Finished",
    "Limits",
    "Reason",
    "Request",
    "Sampling",
    "Stats",
    "Token",
]

Reason = Literal["stop", "length", "cancelled", "deadline", "error"]


class Constraint(Protocol):
    """What a sequence may go on with. One object a sequence; an engine calls it from one thread."""

    def allowed(self) -> NDArray[np.uint32]:
        """A bit for each token [ceil(vocab / 32)], the first token lowest: may it come next?"""

    def accept(self, token: int) -> bool:
        """Go on by a token; whether anything may follow."""


class Request(Frozen):
    """A sequence to go on with: `tokens` is the prompt, `stop_ids` end it and are not told.

    `deadline` is a reading of the engine's clock in seconds after which it ends.
    """

    id: str
    tokens: Sequence[int]
    max_tokens: int
    stop_ids: Collection[int] = ()
    sampling: Sampling = Sampling()
    constraint: Constraint | None = None
    deadline: float | None = None


class Token(Frozen, gc=False, array_like=True, tag="token"):
    """A token of a request, with log-probabilities where they were asked for.

    `top` are the likeliest tokens with theirs, most likely first.
    """

    request: str
    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


class Finished(Frozen, array_like=True, tag="finished"):
    """The end of a request, told exactly once and last.

    `cached` is how many of the prompt's tokens were not computed again; `message` says what went
    wrong where `reason` is `error`.
    """

    request: str
    reason: Reason
    prompt: int
    cached: int
    made: int
    message: str = ""


Event = Token | Finished


class Limits(Frozen):
    """What an engine can take.

    `context` tokens a sequence, prompt and answer together; token ids below `vocab`; `sequences`
    at once and `queue` more that wait. `missing` are the fields of `Sampling` that the package has
    no input for, and `constraint` where it has none for that.
    """

    context: int
    vocab: int
    sequences: int
    queue: int
    missing: tuple[str, ...] = ()


class Stats(Frozen):
    """What an engine has done and holds, for metrics and pictures. Counters count from its start.

    `batch` are the requests running now, each (id, tokens held, tokens made); `pages` of the pool
    are free, held by running sequences, or kept for prefixes; `slots` are for states of a
    sequence's own, if it has any; `remaps` is how often memory went from pages to slots or back.

    `begun` requests were let in, which waited `waited_seconds` for it together. `prompt_tokens` are
    of requests that have ended, `cached_tokens` those of them that were not computed again;
    `fed_tokens` are of pieces of prompts, as they go in.

    `evicted` are prefixes that had to make way, `parked` those of them that went to the host's
    memory and `woken` those that came back; `prefixes` are kept now on the device, and
    `prefixes_parked` on the host, where they take `host_bytes`.

    Of sequences' speculative `rounds` so many tokens were `drafted`, and of the drafts at each
    place `accepted`.
    """

    running: int
    waiting: int
    batch: tuple[tuple[str, int, int], ...]
    pages_total: int
    pages_held: int
    pages_cached: int
    steps: int
    step_seconds: float
    host_seconds: float
    begun: int
    waited_seconds: float
    prompt_tokens: int
    cached_tokens: int
    fed_tokens: int
    made_tokens: int
    finished: Mapping[Reason, int]
    preempted: int
    evicted: int
    parked: int
    remaps: int = 0
    woken: int = 0
    slots_total: int = 0
    slots_held: int = 0
    prefixes: int = 0
    prefixes_parked: int = 0
    host_bytes: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: tuple[int, ...] = ()


class Engine(Protocol):
    """Whatever runs requests.

    Safe to call from any thread. Events come from a thread of its own, a batch a step, through the
    function it was made with.
    """

    @property
    def limits(self) -> Limits:
        """What it can take."""

    def submit(self, request: Request) -> None:
        """Take a request; its events follow.

        Raises `CallerError`: the request asks for what cannot be, such as a longer context.
        Raises `CapacityError`: as many wait as may. Nothing is told of a request that was refused.
        """

    def cancel(self, request: str) -> None:
        """End a request at the next step; one that is over, or unknown, is left alone."""

    def stats(self) -> Stats:
        """What it has done and holds."""

    def close(self, grace: float) -> None:
        """Refuse what is new, give the rest `grace` seconds, cancel it, stop."""
