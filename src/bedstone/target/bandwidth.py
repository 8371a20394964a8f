"""How fast this machine reads memory: measured, in a fraction of a second."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

MEASURED_BYTES = 256 << 20
"""Read in each pass: more than the last-level cache of most machines."""

PASSES = 2


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes a second that all `threads` read together; `measured` here or given by a caller."""

    bytes_per_second: float
    measured: bool
    threads: int = 0


def measure_bandwidth(
    nbytes: int = MEASURED_BYTES, clock: Callable[[], float] = perf_counter
) -> Bandwidth:
    """Read `nbytes` of fresh memory, a share on each CPU this process may use; the better pass.

    A machine whose last-level cache holds `nbytes` looks faster than its memory is.
    """
    threads = len(os.sched_getaffinity(0))
    each = nbytes // threads // 8
    with ThreadPoolExecutor(threads) as pool:
        shares = list(pool.map(lambda _: np.ones(each, np.int64), range(threads)))
        seconds: list[float] = []
        for _ in range(PASSES):
            began = clock()
            list(pool.map(np.bitwise_or.reduce, shares))
            seconds.append(clock() - began)
    return Bandwidth(8 * each * threads / min(seconds), measured=True, threads=threads)
