"""Many modules compiled at a time, told of one by one; an interrupt leaves those not begun."""

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

Told = Callable[[int, int], None]
"""Is called with how many are done, and of how many."""

_UnitT = TypeVar("_UnitT")


def untold(_done: int, _total: int) -> None:
    """Tell nobody."""


def side_by_side(
    build: Callable[[_UnitT], Path], units: Sequence[_UnitT], told: Told
) -> tuple[Path, ...]:
    """`build` of each unit in order, as many at a time as this process may use cores.

    Where one raises, or `told` does, what was not begun never is. A process that `build` starts is
    kept from interrupts, which a terminal sends to all of a group: it is waited for.
    """
    made: list[Path] = []
    cores = len(os.sched_getaffinity(0))
    kept = (signal.SIG_BLOCK, {signal.SIGINT})
    with ThreadPoolExecutor(cores, initializer=signal.pthread_sigmask, initargs=kept) as pool:
        try:
            for path in pool.map(build, units):
                made.append(path)
                told(len(made), len(units))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return tuple(made)
