"""Memory of the CPU device: large pages, and what is not worth a copy into them."""

import ctypes
import mmap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import DeviceError
from bedstone.runtime.cpu import device as cpu
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.cpu.memory import LARGE_PAGE, forget, map_sparse, map_zeros, view_of
from bedstone.runtime.device import StateNeed


def drawn(count: int) -> np.ndarray:
    """Bytes at random."""
    return np.random.default_rng(count).integers(0, 256, count, np.uint8)


@pytest.mark.parametrize("nbytes", [1, LARGE_PAGE - 1, LARGE_PAGE, 3 * LARGE_PAGE + 5])
@pytest.mark.parametrize("large", [False, True])
def test_fresh_memory_is_zeros_to_its_end(nbytes: int, large: bool) -> None:
    memory = map_zeros(nbytes, large=large)
    view = view_of(memory.address, memory.nbytes)
    assert memory.nbytes == nbytes
    assert not view.any()
    view[:] = 1
    if large and nbytes >= LARGE_PAGE:
        assert memory.address % LARGE_PAGE == 0


def test_few_bytes_and_those_beyond_half_of_the_memory_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuDevice, "free_bytes", lambda _: 4 * cpu.WORTH_A_COPY)
    device = CpuDevice(tmp_path, 1)
    few, much = drawn(cpu.WORTH_A_COPY - 1), drawn(cpu.WORTH_A_COPY)
    try:
        found = [device.adopt(data) for data in (few, much, much, much, few)]
    finally:
        device.close()
    assert [memory is None for memory in found] == [False, True, True, False, False]
    assert found[0] is not None
    assert found[0].address == few.ctypes.data


def test_states_lie_apart_in_one_piece_of_large_pages(tmp_path: Path) -> None:
    device = CpuDevice(tmp_path, 1)
    sizes = (1, LARGE_PAGE // 2, 4097, LARGE_PAGE)
    needs = [StateNeed(nbytes, 1, many=True) for nbytes in sizes]
    try:
        states = device.allocate_states(needs, 1)
    finally:
        device.close()
    assert [state.nbytes for state in states] == [need.nbytes for need in needs]
    assert states[0].address % LARGE_PAGE == 0
    assert len({id(state.owner) for state in states}) == 1
    for before, state in pairwise(states):
        assert state.address % 4096 == 0
        assert 0 <= state.address - (before.address + before.nbytes) < 4096


def test_no_state_takes_no_memory(tmp_path: Path) -> None:
    device = CpuDevice(tmp_path, 1)
    try:
        assert device.allocate_states([], 1) == ()
    finally:
        device.close()


def resident(address: int, nbytes: int) -> int:
    """Bytes of a range that the system has given memory."""
    mincore = ctypes.CDLL(None).mincore
    mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    pages = np.zeros(nbytes // mmap.PAGESIZE, np.uint8)
    assert not mincore(address, nbytes, pages.ctypes.data)
    return int((pages & 1).sum()) * mmap.PAGESIZE


@pytest.fixture
def device(tmp_path: Path) -> Iterator[CpuDevice]:
    device = CpuDevice(tmp_path, 1)
    yield device
    device.close()


@pytest.mark.parametrize("chunk", [mmap.PAGESIZE, LARGE_PAGE])
def test_memory_that_goes_elsewhere_is_the_system_s_again(device: CpuDevice, chunk: int) -> None:
    needs = [StateNeed(4 * chunk, 64), StateNeed(100, 0), StateNeed(2 * chunk, 64)]
    one, fixed, two = device.allocate_states(needs, chunk)
    assert (one.reserved, fixed.reserved, two.reserved) == (6 * chunk, 0, 6 * chunk)
    assert one.address % chunk == two.address % chunk == 0
    data = drawn(6 * chunk)
    device.write(one.address, data[: 4 * chunk])
    device.write(two.address, data[4 * chunk :])
    device.write(fixed.address, data[:100])
    moves = [(one.address + at * chunk, two.address + to * chunk) for at, to in ((3, 5), (1, 2))]
    before = resident(one.address, 6 * chunk), resident(two.address, 6 * chunk)
    assert before == (4 * chunk, 2 * chunk)
    remap = device.remap(moves, chunk)
    remap.wait()
    assert remap.ready
    assert (resident(one.address, 6 * chunk), resident(two.address, 6 * chunk)) == (
        2 * chunk,
        2 * chunk,
    )
    for _, target in moves:
        assert not view_of(target, chunk).any()
        view_of(target, chunk)[:] = 7
    assert resident(two.address, 6 * chunk) == 4 * chunk
    for at in (0, 2):
        held = device.read(one.address + at * chunk, chunk)
        assert np.array_equal(held, data[at * chunk : (at + 1) * chunk])
    assert np.array_equal(device.read(fixed.address, 100), data[:100])


def test_large_pages_are_what_goes_where_states_fill_them(device: CpuDevice) -> None:
    few, many = StateNeed(2 * LARGE_PAGE - 1, 64), StateNeed(2 * LARGE_PAGE, 64)
    assert device.chunk([few, many]) == mmap.PAGESIZE
    assert device.chunk([many, many]) == LARGE_PAGE
    assert device.chunk([StateNeed(2**30, 0), few]) == mmap.PAGESIZE


def test_where_addresses_count_as_memory_states_are_as_large_as_they_are(
    device: CpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that counts all that is mapped has no room for what is never used."""
    monkeypatch.setattr(cpu, "map_sparse", lambda *_, **__: None)
    one, two = device.allocate_states([StateNeed(9000, 64), StateNeed(5, 64)], mmap.PAGESIZE)
    assert (one.reserved, two.reserved) == (0, 0)
    assert (one.nbytes, two.nbytes) == (9000, 5)
    assert map_sparse(2**62, large=False) is None


def test_memory_that_is_nobody_s_is_not_taken_back() -> None:
    with pytest.raises(DeviceError, match="4096 bytes of memory are not taken back: "):
        forget(mmap.PAGESIZE, mmap.PAGESIZE)
