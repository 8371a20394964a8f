"""What is told of each request: tokens as they come, and its end exactly once."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, overload

from bedstone.serve.engine.sequence import Sequence as Running
from bedstone.serve.requests import Event, Finished, Reason, Token

_More = tuple[Sequence[Any], ...]
_REASONS: tuple[Reason, ...] = ("stop", "length", "cancelled", "deadline", "error")


class Told(Sequence[Event]):
    """Events in order, those of a step that all rows went on from made when they are asked for.

    So whoever takes them does that, and no step waits for it.
    """

    __slots__ = ("_count", "_parts")

    def __init__(self) -> None:
        self._parts: list[tuple[Event] | tuple[Sequence[str], Sequence[int], *_More]] = []
        self._count = 0

    def add(self, event: Event) -> None:
        """One more."""
        self._parts.append((event,))
        self._count += 1

    def add_each(self, names: Sequence[str], tokens: Sequence[int], *likely: Sequence[Any]) -> None:
        """A token of each of some requests, by their names, perhaps with what is said of each."""
        self._parts.append((names, tokens, *likely))
        self._count += len(tokens)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Event]:
        return chain.from_iterable(
            part if len(part) == 1 else map(Token, *part) for part in self._parts
        )

    @overload
    def __getitem__(self, at: int) -> Event: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...

    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        return list(self)[at]


class Ledger:
    """The requests that are open, what is to be told, and counts of what was."""

    def __init__(self) -> None:
        self.open: dict[str, Running] = {}
        self._told = Told()
        self._ended: list[str] = []
        self.made_tokens = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self._finished: dict[Reason, int] = dict.fromkeys(_REASONS, 0)

    @property
    def finished(self) -> Mapping[Reason, int]:
        """How many ended, by why."""
        return dict(self._finished)

    def begin(self, sequence: Running) -> None:
        """A request is open."""
        self.open[sequence.id] = sequence

    def tell_each(
        self, names: Sequence[str], tokens: Sequence[int], *likely: Sequence[Any]
    ) -> None:
        """A token of each of some open requests, perhaps with how likely that and others were."""
        self._told.add_each(names, tokens, *likely)
        self.made_tokens += len(tokens)

    def end(self, sequence: Running, reason: Reason, message: str = "") -> None:
        """A request is over; one that was over already is left alone."""
        if self.open.pop(sequence.id, None) is None:
            return
        sequence.over = True
        self._ended.append(sequence.id)
        self._finished[reason] += 1
        cached = max(0, sequence.cached)
        self.prompt_tokens += sequence.prompt
        self.cached_tokens += cached
        self._told.add(
            Finished(sequence.id, reason, sequence.prompt, cached, sequence.made, message)
        )

    def take(self) -> tuple[Sequence[Event], list[str]]:
        """What is to be told, which is told then, and the requests that it ends."""
        told, self._told = self._told, Told()
        ended, self._ended = self._ended, []
        return told, ended
