"""Stages of a long piece of work on stderr: a line that changes on a terminal, nothing in a log."""

import sys
from time import perf_counter
from typing import Self


class Stages:
    """The stage at work, and the seconds each one took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name: str | None = None
        self._since = 0.0
        self._live = sys.stderr.isatty()

    def begin(self, name: str) -> None:
        """End the stage at work and begin `name`."""
        self._end()
        self._name, self._since = name, perf_counter()
        if self._live:
            print(f"\r\x1b[K{name} …", end="", file=sys.stderr, flush=True)

    def step(self, name: str, done: int, total: int) -> None:
        """Note that `name` is `done` of `total` through."""
        if name != self._name:
            self.begin(name)
        if self._live and total > 1:
            print(f"\r\x1b[K{name} {done}/{total}", end="", file=sys.stderr, flush=True)

    def _end(self) -> None:
        if self._name is not None:
            spent = perf_counter() - self._since
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + spent
            self._name = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
