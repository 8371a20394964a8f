"""Chunks that go from state to state behind a driver that does everything as late as it may."""

import numpy as np
import pytest

from bedstone.errors import CallerError, DeviceError
from bedstone.runtime.cuda import bindings
from bedstone.runtime.cuda.device import CudaDevice
from bedstone.runtime.device import StateNeed
from bedstone.runtime.load import load
from bedstone.runtime.remap import ChunkMove
from cuda_fake import GRANULE, Driver
from cuda_served import served_code, served_cuda_parts
from remapped import LOADED, SHAPE, serve_by_turns

TOKEN_BYTES = GRANULE
SIZES = {"token_bytes": TOKEN_BYTES, "line": 4 * GRANULE}
"""A page of 4 tokens and a slot are as large; a chunk is half of either."""

CHUNK = 2 * GRANULE


@pytest.fixture
def served(monkeypatch, tmp_path):
    driver = Driver(served_code(TOKEN_BYTES))
    monkeypatch.setattr(bindings, "open_driver", lambda _ordinal: driver)
    with load(served_cuda_parts(tmp_path, **SHAPE, **SIZES), device="cuda", **LOADED) as session:
        yield session
    assert driver.leaks() == set()


@pytest.mark.parametrize(("reuse", "host_bytes"), [(False, 0), (True, 0), (True, 2**28)])
def test_many_short_sequences_and_few_long_ones_by_turns(served, reuse, host_bytes):
    driver = bindings.open_driver(0)
    before = dict(driver.placed)
    serve_by_turns(served, reuse=reuse, turns=2, host_bytes=host_bytes)
    assert driver.placed.keys() == before.keys()
    assert sorted(driver.placed.values()) == sorted(before.values())


def test_chunks_are_as_the_pool_counts_them(served):
    exchange = served.capacity.exchange
    assert (exchange.chunk, exchange.tokens, exchange.slots) == (CHUNK, 80, 21)
    memory = served.loaded.memory
    assert {each.reserved for region, each in memory.items() if region.kind == "state"} == {
        44 * CHUNK
    }


@pytest.mark.parametrize(
    "moves",
    [
        [ChunkMove("kv", 44, "sums", 12)],
        [ChunkMove("kv", 31, "sums", 44)],
        [ChunkMove("kv", -1, "sums", 12)],
        [ChunkMove("v", 0, "sums", 12)],
    ],
)
def test_a_chunk_outside_of_a_state_is_refused(served, moves):
    with pytest.raises(CallerError, match=r"no chunk -?[0-9]+ of 131072 bytes in a state"):
        served.remaps.start(moves)


def test_a_session_that_was_not_loaded_for_it_has_no_remaps(monkeypatch, tmp_path):
    driver = Driver(served_code(TOKEN_BYTES))
    monkeypatch.setattr(bindings, "open_driver", lambda _ordinal: driver)
    parts = served_cuda_parts(tmp_path, **SHAPE, **SIZES)
    with load(parts, device="cuda", tokens=64, sequences=4) as session:
        assert session.remaps is None
        assert session.capacity.exchange is None
        with pytest.raises(CallerError, match="has 4194304 bytes"):
            session.clear("kv", 64 * TOKEN_BYTES, 1)


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def device(driver):
    device = CudaDevice(driver)
    yield device
    device.close()
    assert driver.leaks() == set()


def allocated(device):
    """Two states of 4 and 2 chunks, their bytes all different."""
    one, two = device.allocate_states([StateNeed(n * CHUNK, 64) for n in (4, 2)], CHUNK)
    data = np.random.default_rng(1).integers(1, 256, 6 * CHUNK, np.uint8)
    device.write(one.address, data[: 4 * CHUNK])
    device.write(two.address, data[4 * CHUNK :])
    return one.address, two.address, data.reshape(6, CHUNK)


def test_what_was_asked_for_before_still_has_the_memory(device):
    one, two, data = allocated(device)
    device.copy(two, one + 3 * CHUNK, CHUNK)
    remap = device.remap([(one + 3 * CHUNK, two + 2 * CHUNK)], CHUNK)
    device.copy(one, one + CHUNK, CHUNK)
    remap.wait()
    remap.wait()
    assert remap.ready
    assert np.array_equal(device.read(two, CHUNK), data[3])
    assert np.array_equal(device.read(one, CHUNK), data[1])
    assert np.array_equal(device.read(one + 2 * CHUNK, CHUNK), data[2])
    assert not device.read(two + 2 * CHUNK, CHUNK).any()


def test_neighbours_are_let_in_and_zeroed_as_one(device, driver, monkeypatch):
    one, two, _ = allocated(device)
    calls = []
    for name in ("allow", "zero"):
        made = getattr(driver, name)
        monkeypatch.setattr(
            driver,
            name,
            lambda *args, made=made, name=name: (calls.append((name, args)), made(*args)),
        )
    device.remap([(one, two + 3 * CHUNK), (one + 3 * CHUNK, two + 2 * CHUNK)], CHUNK).wait()
    assert [(name, *args[:2]) for name, args in calls] == [
        ("allow", two + 2 * CHUNK, 2 * CHUNK),
        ("zero", two + 2 * CHUNK, 2 * CHUNK),
    ]


def test_a_driver_that_refuses_is_told_by_whoever_waits(device, driver):
    one, two, _ = allocated(device)
    driver.refuse["cuMemMap"] = "CUDA_ERROR_OUT_OF_MEMORY"
    remap = device.remap([(one, two + 2 * CHUNK)], CHUNK)
    with pytest.raises(DeviceError, match=r"did not go from state to state: .*cuMemMap"):
        remap.wait()


def test_a_device_that_is_closed_lets_a_remap_end(driver):
    device = CudaDevice(driver)
    one, two, _ = allocated(device)
    device.remap([(one, two + 2 * CHUNK)], CHUNK)
    device.close()
    assert driver.leaks() == set()
