"""Bytes of states on their way to page-locked memory and back, while steps run."""

import time

import numpy as np
import pytest

from bedstone.runtime.device import RowCopy, StateNeed

MIB = 2**20


@pytest.fixture
def held(device):
    """A state of 64 rows of 3 MiB and a block of the host that holds as many, apart."""
    (state,) = device.allocate_states([StateNeed(192 * MIB, 3 * MIB)], 2 * MIB)
    block = device.allocate_host(64 * 4 * MIB)
    data = np.random.default_rng(2).integers(0, 256, 192 * MIB, np.uint8)
    device.write(state.address, data)
    return state.address, block.address, data.reshape(64, 3 * MIB)


def test_rows_go_and_come_back(device, held):
    state, block, data = held
    width, pitch = 3 * MIB, 4 * MIB
    gone = device.transfer([RowCopy(state, width, block, pitch, 64, width)])
    gone.wait()
    assert gone.ready
    device.clear(state, data.size)
    back = [
        RowCopy(block + 7 * pitch, pitch, state + 9 * width, width, 20, width),
        RowCopy(block + 5, pitch, state, width, 1, 100),
    ]
    device.transfer(back).wait()
    found = device.read(state, data.size).reshape(64, width)
    assert np.array_equal(found[9:29], data[7:27])
    assert np.array_equal(found[0, :100], data[0, 5:105])
    assert not found[30:].any()


def test_they_come_after_what_was_asked_for_before_and_nothing_waits_for_them(driver, device, held):
    state, block, data = held
    width = data.size
    device.clear(state, 100)
    began = time.perf_counter()
    copies = [device.transfer([RowCopy(state, width, block, width, 1, width)]) for _ in range(8)]
    asked = time.perf_counter()
    # as a step would: work of the stream that computes is over long before
    device.copy(state + 192 * MIB - 64, state + 192 * MIB - 128, 64)
    driver.sync(device._stream)
    stepped = time.perf_counter()
    assert not copies[-1].ready
    for copy in copies:
        copy.wait()
    ended = time.perf_counter()
    assert asked - began < 0.01
    assert stepped - asked < (ended - began) / 4
    found = device.read(state, 200)
    assert not found[:100].any()
    device.clear(state, data.size)
    device.transfer([RowCopy(block, width, state, width, 1, width)]).wait()
    assert np.array_equal(device.read(state, 200), found)
