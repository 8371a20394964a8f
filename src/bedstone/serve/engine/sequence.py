"""A request on its way: its tokens, what it holds, how far it has come."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.pool import Lease
from bedstone.runtime.edits import Edits
from bedstone.serve.requests import Request


@dataclass(slots=True, eq=False)
class Sequence:
    """`tokens` are the prompt and what was made, `end` of them once the last has been.

    The states hold the first `fed` of them; while it has a row, `Rows.positions` says how many.

    `order` counts the requests as they came, `came` is when. `row` is its place in a step, -1
    without one. `had` is how many tokens were there when it last began, `cached` when it first did,
    -1 before. `woken`: a prefix came back from the host for it, and it did not begin since.
    `strikes` counts the steps of several sequences that failed with it since it had `struck`
    tokens. `slow`: something is done on the host between its tokens. A step goes `spare` tokens
    beyond the one it is sure to make; `past`: the states are further than the tokens.
    """

    request: Request
    id: str
    order: int
    stops: frozenset[int]
    tokens: list[int]
    prompt: int
    end: int
    fed: int = 0
    lease: Lease | None = None
    row: int = -1
    had: int = 0
    cached: int = -1
    came: float = 0.0
    passed: int = 0
    gave_way: bool = False
    woken: bool = False
    strikes: int = 0
    struck: int = 0
    over: bool = False
    slow: bool = False
    edits: Edits | None = None
    allowed: NDArray[np.uint32] | None = None
    spare: int = 0
    past: bool = False

    @staticmethod
    def of(request: Request, order: int) -> "Sequence":
        """A sequence that has not begun."""
        tokens = [int(token) for token in request.tokens]
        count = len(tokens)
        stops = frozenset(request.stop_ids)
        found = Sequence(
            request, request.id, order, stops, tokens, count, count + request.max_tokens
        )
        found.slow = request.constraint is not None or request.sampling.logprobs is not None
        return found

    @property
    def most(self) -> int:
        """The most tokens its states hold: the last one made is not fed back."""
        return self.end - 1 + self.spare

    @property
    def suspect(self) -> bool:
        """Whether a call of several failed with it, and it has made no token since."""
        return self.strikes > 0 and len(self.tokens) == self.struck

    @property
    def made(self) -> int:
        """How many tokens were made."""
        return len(self.tokens) - self.prompt

    @property
    def left(self) -> int:
        """How many tokens must go in before there is one to follow them."""
        return len(self.tokens) - self.fed
