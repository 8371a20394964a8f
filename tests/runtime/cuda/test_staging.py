"""Writes on their way to the device, in as few copies as make sense and never too late."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.runtime.cuda.staging import Staging, joined
from bedstone.runtime.device import Places
from cuda_fake import Driver

ranges = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=12).map(
    lambda pairs: [(start, start + size) for start, size in pairs]
)


@given(ranges, st.integers(1, 50))
def test_joined_ranges_cover_what_was_written_and_no_wide_gap(written, gap):
    found = joined(written, gap)
    inside = {at for start, end in written for at in range(start, end)}
    covered = {at for start, end in found for at in range(start, end)}
    assert inside <= covered
    assert all(later[0] - earlier[1] >= gap for earlier, later in pairwise(found))
    edges = {start for start, _ in written}, {end for _, end in written}
    assert all(start in edges[0] and end in edges[1] for start, end in found)
    for at in covered - inside:
        before = max((end for _, end in written if end <= at), default=None)
        after = min((start for start, _ in written if start > at), default=None)
        assert after - before < gap


@pytest.fixture
def staged():
    driver = Driver()
    stream = driver.stream()
    address = driver.alloc(40_000)
    driver.zero(address, 40_000, stream)
    return driver, stream, address, Staging(driver, address, 40_000)


def boxed(at: np.ndarray, width: int) -> Places:
    """Places and what they lie in."""
    rows, columns = np.divmod(at, width)
    return Places(at, *(int(each) for side in (rows, columns) for each in (side.min(), side.max())))


def device_bytes(driver, address, nbytes, stream):
    found = np.empty(nbytes, np.uint8)
    driver.copy_out(found.ctypes.data, address, nbytes, stream)
    driver.sync(stream)
    return found


@given(st.data())
def test_the_device_has_what_was_written_last(data):
    driver = Driver()
    stream = driver.stream()
    address = driver.alloc(40_000)
    driver.zero(address, 40_000, stream)
    staging = Staging(driver, address, 40_000)
    model = np.zeros(40_000, np.uint8)
    for value in range(1, data.draw(st.integers(1, 12))):
        start = data.draw(st.integers(0, 39_900))
        size = data.draw(st.integers(0, 100))
        if data.draw(st.booleans()):
            staging.write(address + start, np.full(size, value, np.uint8))
            model[start : start + size] = value
        else:
            at = np.array(data.draw(st.lists(st.integers(0, size), unique=True)), np.intp)
            # a box of rows may be wider than the places in it, and lies inside as a whole
            first = min(max(start // 4 * 4 - 400, 0), 39_100)
            width = data.draw(st.integers(1, 101))
            if at.size:
                found = np.full(len(at), value, np.int32)
                staging.scatter(address + first, boxed(at, width), width, found)
            model[first : first + 404].view(np.int32)[at] = value
        if data.draw(st.booleans()):
            staging.flush(stream)
    staging.flush(stream)
    assert np.array_equal(device_bytes(driver, address, 40_000, stream), model)


def test_nothing_written_is_no_copy(staged):
    driver, stream, address, staging = staged
    staging.flush(stream)
    staging.write(address, np.zeros(0, np.uint8))
    staging.flush(stream)
    assert "copy_in" not in driver.calls


def test_neighbours_are_one_copy_and_distant_ones_two(staged):
    driver, stream, address, staging = staged
    for start in (0, 64, 256):
        staging.write(address + start, np.ones(4, np.uint8))
    staging.flush(stream)
    assert driver.calls["copy_in"] == 1
    for start in (0, 30_000):
        staging.write(address + start, np.ones(4, np.uint8))
    staging.flush(stream)
    assert driver.calls["copy_in"] == 3


def test_numbers_scattered_over_rows_are_one_copy_of_the_columns_they_lie_in(staged):
    driver, stream, address, staging = staged
    places = np.arange(0, 40) * 200 + np.arange(40) % 3
    found = np.arange(40, dtype=np.int32)
    staging.scatter(address + 4000, Places(places, 0, 39, 0, 2), 200, found)
    staging.flush(stream)
    assert "copy_in" not in driver.calls
    assert driver.calls["copy_rows"] == 1
    held = device_bytes(driver, address, 40_000, stream)[4000:].view(np.int32)
    assert held[places].tolist() == list(range(40))
    assert np.count_nonzero(held) == 39


def test_a_block_is_written_again_only_after_its_copy(staged):
    """Nothing runs until it must: a third flush has to wait for the first one's copy."""
    driver, stream, address, staging = staged
    seen = []
    for value in range(1, 6):
        staging.write(address, np.full(8, value, np.uint8))
        staging.flush(stream)
        copy = np.empty(8, np.uint8)
        driver.copy_out(copy.ctypes.data, address, 8, stream)
        seen.append(copy)
    driver.sync(stream)
    assert [copy.tolist() for copy in seen] == [[value] * 8 for value in range(1, 6)]


def test_only_the_inputs_are_held(staged):
    _, _, address, staging = staged
    assert staging.holds(address)
    assert staging.holds(address + 39_999)
    assert not staging.holds(address + 40_000)
    assert not staging.holds(address - 1)


def test_everything_is_let_go_of(staged):
    driver, _, address, staging = staged
    staging.close()
    assert driver.leaks() == {"stream", address}
