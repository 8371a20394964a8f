"""Memory of the CPU device: large pages, and what is not worth a copy into them."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bedstone.runtime.cpu import device as cpu
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.cpu.memory import LARGE_PAGE, map_zeros, view_of
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
