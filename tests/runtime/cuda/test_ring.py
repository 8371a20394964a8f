"""Rows of outputs: where they lie, and that they are read before they are written over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.runtime.cuda.ring import Ring, plan_row, tap_kernel
from bedstone.runtime.device import Tap
from cuda_fake import Driver, words


@given(st.lists(st.integers(0, 300), max_size=12))
def test_taps_of_a_row_do_not_overlap(sizes):
    layout = plan_row([Tap(0, 0, size) for size in sizes])
    ends = [at + -(-size // 4) * 4 for at, size in zip(layout.offsets, sizes, strict=True)]
    assert all(end <= at for end, at in zip(ends, layout.offsets[1:], strict=False))
    assert layout.nbytes >= max(ends, default=0)
    assert all(at % 16 == 0 for at in layout.offsets)


def test_the_tap_kernel_is_text_of_an_old_version():
    text = tap_kernel()
    assert b".version 7.0" in text
    assert b".entry bedstone_tap" in text


class Steps:
    """A ring over the fake driver, and outputs that change with every step."""

    def __init__(self, sizes):
        self.driver = Driver()
        self.stream = self.driver.stream()
        self.sources = [self.driver.alloc(-(-size // 4) * 4) for size in sizes]
        self.sizes, self.taken = sizes, 0
        module = self.driver.load(tap_kernel())
        self.ring = Ring(self.driver, module, self.stream, plan_row(self.taps([])).nbytes)

    def taps(self, sinks):
        sinks = sinks or [np.zeros(0, np.uint8)] * len(self.sizes)
        return [
            Tap(source, sink.ctypes.data, size)
            for source, sink, size in zip(self.sources, sinks, self.sizes, strict=True)
        ]

    def start(self, repeat):
        sinks = [np.zeros((repeat, size), np.uint8) for size in self.sizes]
        taps = self.taps(sinks)
        tapping = self.ring.tap_launches(taps)
        reading = self.ring.begin(repeat, taps)
        for _ in range(repeat):
            self.taken += 1
            self.driver._put(self.stream, self.filling(self.taken))
            for call in tapping.calls:
                assert self.driver.launch(*call, None) == 0
        self.ring.enqueued(reading)
        wanted = [
            [value % 251 for value in range(self.taken - repeat + 1, self.taken + 1)]
            for _ in self.sizes
        ]
        return reading, sinks, wanted

    def filling(self, value):
        def fill():
            for source, size in zip(self.sources, self.sizes, strict=True):
                words(source, size, np.uint8)[:] = value % 251

        return fill


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.data())
def test_rows_are_what_each_step_left_in_any_order_of_reading(repeats, data):
    steps = Steps([4, 7])
    steps.ring.rows = 16
    waiting = []
    for repeat in repeats:
        waiting.append(steps.start(repeat))
        if data.draw(st.booleans()):
            check(waiting.pop(data.draw(st.integers(0, len(waiting) - 1))))
    for started in waiting:
        check(started)
    steps.ring.close()


def check(started):
    reading, sinks, wanted = started
    reading.wait()
    for sink, values in zip(sinks, wanted, strict=True):
        assert (sink == np.array(values, np.uint8)[:, None]).all()


@pytest.mark.parametrize("count", [1, 8, 9, 20])
def test_more_taps_than_one_launch_takes(count):
    steps = Steps([4 * (index + 1) for index in range(count)])
    assert len(steps.ring.tap_launches(steps.taps([])).calls) == -(-count // 8)
    for _ in range(3):
        check(steps.start(5))


def test_rows_as_long_as_they_must_be():
    steps = Steps([3_000_000])
    assert steps.ring.stride == 2**22
    assert steps.ring.rows == 64
    check(steps.start(2))


def test_a_replay_that_broke_off_takes_only_the_rows_it_filled():
    steps = Steps([4])
    taps = steps.taps([])
    tapping = steps.ring.tap_launches(taps)
    broken = steps.ring.begin(5, taps)
    for call in (*tapping.calls, *tapping.calls):
        steps.driver.launch(*call, None)
    steps.ring.abandon(broken, 2)
    check(steps.start(3))
