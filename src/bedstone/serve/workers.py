"""Threads for what would hold up the loop: long texts, templates, grammars."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bedstone.errors import CapacityError

THREADS = 2
MOST_WAITING = 64

ResultT = TypeVar("ResultT")


class Workers:
    """A few threads, and a bounded line before them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "bedstone-worker")
        self._busy = 0

    async def run(self, work: Callable[[], ResultT], seconds: float | None = None) -> ResultT:
        """What `work` returns or raises, from another thread.

        Raises `CapacityError`: too much waits already. Raises `TimeoutError`: it takes longer.
        """
        if self._busy >= MOST_WAITING:
            raise CapacityError("too many long requests at once")
        self._busy += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        future.add_done_callback(self._done)
        async with asyncio.timeout(seconds):
            return await asyncio.shield(future)

    def close(self) -> None:
        """Take no more; what runs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, future: asyncio.Future[ResultT]) -> None:
        self._busy -= 1
        if not future.cancelled():
            # whoever waited may have gone; an error nobody takes is no news
            future.exception()
