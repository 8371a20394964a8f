"""A line now and then on what an engine does, while it does anything."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Self

from bedstone.serve.requests import Stats

LOG = logging.getLogger("bedstone.serve.rates")

SECONDS = 5.0
"""From a line to the next."""

SHORTEST = 0.05
"""Seconds in the queue that are said."""

GIB = 1 << 30

COUNTED: Mapping[str, str] = {
    "evicted": "evicted",
    "parked": "parked",
    "woken": "woken",
    "remaps": "remapped",
    "preempted": "gave way",
}
"""Counters that are said where they went on."""


class Watch:
    """Logs the rates of an engine from a thread of its own, as long as it is entered."""

    def __init__(
        self, stats: Callable[[], Stats], clock: Callable[[], float], seconds: float = SECONDS
    ) -> None:
        self._stats = stats
        self._clock = clock
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bedstone-rates", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        before, began = self._stats(), self._clock()
        while not self._over.wait(self._seconds):
            after, now = self._stats(), self._clock()
            if after.running or after.waiting or after.steps > before.steps:
                LOG.info(rates(before, after, now - began))
            before, began = after, now


def rates(before: Stats, after: Stats, seconds: float) -> str:
    """What an engine did in the seconds between two pictures of it, and holds in the second."""
    return ", ".join(_rates(before, after, seconds))


def _rates(before: Stats, after: Stats, seconds: float) -> Iterator[str]:
    yield f"{after.running} running"
    yield f"{after.waiting} waiting"
    waited = (after.waited_seconds - before.waited_seconds) / max(1, after.begun - before.begun)
    if waited >= SHORTEST:
        yield f"{waited:.1f} s in the queue"
    if after.pages_total:
        held, kept = after.pages_held / after.pages_total, after.pages_cached / after.pages_total
        yield f"pages {held:.0%} held {kept:.0%} kept"
    if after.slots_total:
        yield f"slots {after.slots_held / after.slots_total:.0%} held"
    steps = after.steps - before.steps
    if steps:
        each = (after.step_seconds - before.step_seconds) / steps
        yield f"{steps} steps of {1e3 * each:.1f} ms"
    yield f"{(after.made_tokens - before.made_tokens) / seconds:.0f} tokens/s made"
    yield f"{(after.fed_tokens - before.fed_tokens) / seconds:.0f} read"
    prompts = after.prompt_tokens - before.prompt_tokens
    if prompts:
        yield f"{(after.cached_tokens - before.cached_tokens) / prompts:.0%} of prompts cached"
    rounds = after.rounds - before.rounds
    if rounds:
        yield f"{1 + (sum(after.accepted) - sum(before.accepted)) / rounds:.2f} tokens a round"
    if after.prefixes_parked:
        yield f"{after.host_bytes / GIB:.1f} GiB of {after.prefixes_parked} prefixes on the host"
    for name, what in COUNTED.items():
        count = getattr(after, name) - getattr(before, name)
        if count:
            yield f"{count} {what}"
