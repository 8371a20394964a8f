"""What is told of each request: tokens as they come, and its end exactly once."""

from collections.abc import Mapping

from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.requests import Event, Finished, Reason, Token

_REASONS: tuple[Reason, ...] = ("stop", "length", "cancelled", "deadline", "error")


class Ledger:
    """The requests that are open, what is to be told, and counts of what was."""

    def __init__(self) -> None:
        self.open: dict[str, Sequence] = {}
        self._events: list[Event] = []
        self._ended: list[str] = []
        self.made_tokens = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self._finished: dict[Reason, int] = dict.fromkeys(_REASONS, 0)

    @property
    def finished(self) -> Mapping[Reason, int]:
        """How many ended, by why."""
        return dict(self._finished)

    def begin(self, sequence: Sequence) -> None:
        """A request is open."""
        self.open[sequence.id] = sequence

    def tell(self, tokens: list[Token]) -> None:
        """Tokens of open requests."""
        self._events.extend(tokens)
        self.made_tokens += len(tokens)

    def end(self, sequence: Sequence, reason: Reason, message: str = "") -> None:
        """A request is over; one that was over already is left alone."""
        if self.open.pop(sequence.id, None) is None:
            return
        sequence.over = True
        self._ended.append(sequence.id)
        self._finished[reason] += 1
        cached = max(0, sequence.cached)
        self.prompt_tokens += sequence.prompt
        self.cached_tokens += cached
        self._events.append(
            Finished(sequence.id, reason, sequence.prompt, cached, sequence.made, message)
        )

    def take(self) -> tuple[list[Event], list[str]]:
        """What is to be told, which is told then, and the requests that it ends."""
        events, self._events = self._events, []
        ended, self._ended = self._ended, []
        return events, ended
