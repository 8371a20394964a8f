"""The read bandwidth is bytes over the better pass's time."""

import itertools
import os
from time import perf_counter

from bedstone.target.bandwidth import measure_bandwidth


def test_the_better_of_the_passes_counts():
    clock = itertools.chain([0.0, 4.0, 10.0, 12.0]).__next__
    found = measure_bandwidth(nbytes=1 << 20, clock=clock)
    threads = len(os.sched_getaffinity(0))
    assert found.bytes_per_second == (1 << 20) // threads // 8 * 8 * threads / 2.0
    assert (found.measured, found.threads) == (True, threads)


def test_a_measurement_is_short():
    began = perf_counter()
    found = measure_bandwidth()
    assert perf_counter() - began < 5
    assert 1e8 < found.bytes_per_second < 1e14
