"""Memory of the CPU device: large pages, and weights copied into them."""

from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import WeightError
from bedstone.runtime.cpu import device as cpu
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.cpu.memory import LARGE_PAGE, copy_all, map_zeros, view_of
from bedstone.runtime.device import Stored, Upload

MIB = 1024 * 1024


def drawn(count: int) -> np.ndarray:
    """Bytes at random."""
    return np.random.default_rng(count).integers(0, 256, count, np.uint8)


def whole(stored: Stored, address: int, nbytes: int, source: int = 0) -> Upload:
    """One run of bytes of a tensor."""
    return Upload(stored, source, nbytes, address, nbytes, 1, nbytes)


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


def test_a_tensor_of_a_file_arrives_piece_by_piece(tmp_path: Path) -> None:
    data = drawn(20 * MIB + 7)
    path = tmp_path / "tensor"
    path.write_bytes(bytes(100) + data.tobytes())
    memory = map_zeros(data.size, large=True)
    told: list[int] = []
    stored = Stored(np.zeros(0, np.uint8), (path, 100))
    copy_all([whole(stored, memory.address, data.size)], 2, told.append)
    assert np.array_equal(view_of(memory.address, data.size), data)
    assert told == sorted(told)
    assert told[-1] == data.size
    assert len(told) == 3


def test_rows_apart_and_bytes_of_no_file_arrive() -> None:
    data = drawn(6 * 10)
    memory = map_zeros(8 * 3, large=False)
    stored = Stored(data)
    some = Upload(stored, 2, 10, memory.address, 8, 3, 4)
    copy_all([some, whole(stored, memory.address + 4, 4, 50)], 2, lambda _: None)
    made = view_of(memory.address, 24).reshape(3, 8)
    assert np.array_equal(made[:, :4], data.reshape(6, 10)[:3, 2:6])
    assert np.array_equal(made[0, 4:], data[50:54])


def test_a_file_that_became_shorter_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tensor"
    path.write_bytes(bytes(99))
    memory = map_zeros(100, large=False)
    stored = Stored(np.zeros(0, np.uint8), (path, 0))
    with pytest.raises(WeightError, match=r"tensor` ends 1 bytes before"):
        copy_all([whole(stored, memory.address, 100)], 1, lambda _: None)


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
