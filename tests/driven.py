"""An engine without a thread, driven turn by turn, its events sorted by request."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from bedstone.runtime.executor import Executor
from bedstone.serve.engine.core import Core
from bedstone.serve.engine.options import DEFAULTS, Options
from bedstone.serve.requests import Event, Finished, Request, Token


class Told:
    """What was told of each request; that its end came last, and once."""

    def __init__(self) -> None:
        self.tokens: dict[str, list[int]] = defaultdict(list)
        self.ends: dict[str, Finished] = {}
        self.events: list[Event] = []

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            assert event.request not in self.ends, event
            self.events.append(event)
            if isinstance(event, Token):
                self.tokens[event.request].append(event.token)
            else:
                self.ends[event.request] = event


class Driven(Told):
    """A core over a session, and the time that its clock tells."""

    def __init__(self, session: Executor, options: Options = DEFAULTS) -> None:
        super().__init__()
        self.now = 0.0
        self.core = Core(session, options, lambda: self.now)

    def submit(self, name: str, tokens: Sequence[int], max_tokens: int, **more: object) -> None:
        request = Request(name, tokens, max_tokens, **more)
        self.core.require_possible(request)
        self.core.submit(request)

    def turn(self) -> list[Event]:
        self.core.turn()
        events, ended = self.core.take_events()
        self.take(events)
        assert sorted(ended) == sorted(e.request for e in events if isinstance(e, Finished))
        return events

    def host_seconds(
        self, stretches: int, turns: int, ended: Callable[[Sequence[str]], None] = len
    ) -> float:
        """Processor time of a step beside the device's work: the mean of the least stretch.

        What comes once in some steps is in each stretch; what empties the host's caches, such as
        other work on the machine, is not. `ended` is told which requests end.
        """
        return min(self._stretch(turns, ended) for _ in range(stretches))

    def _stretch(self, turns: int, ended: Callable[[Sequence[str]], None]) -> float:
        before = self.core.stats()
        for _ in range(turns):
            self.core.turn()
            ended(self.core.take_events()[1])
        after = self.core.stats()
        return (after.host_seconds - before.host_seconds) / (after.steps - before.steps)

    def come_and_go(self, clients: int, stretches: int, turns: int) -> float:
        """The same while so many ask again as soon as they are answered.

        Prompts of 8 to 39 tokens, answers of 48 to 96: nearly one of each a step where 64 ask.
        """
        sizes, names = np.random.default_rng(0), count()

        def ask(ended: Sequence[str]) -> None:
            for _ in ended:
                prompt, most = sizes.integers(3, 50, sizes.integers(8, 40)), sizes.integers(48, 97)
                self.submit(f"c{next(names)}", prompt.tolist(), int(most))

        ask("." * clients)
        # until they are answered at different times
        self._stretch(128, ask)
        return self.host_seconds(stretches, turns, ask)

    def finish(self, most: int = 10_000) -> None:
        """Turns until nothing is open."""
        for _ in range(most):
            if not self.core.busy:
                return
            self.turn()
        raise AssertionError(f"{self.core.stats()} is not over after {most} turns")
