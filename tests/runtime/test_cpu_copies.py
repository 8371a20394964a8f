"""Weights on their way: in few reads, whatever lies between them, and never past their time."""

import threading
from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import WeightError
from bedstone.runtime.cpu import copies
from bedstone.runtime.cpu.copies import BATCH, Copies, plan_copies
from bedstone.runtime.cpu.memory import map_zeros, view_of
from bedstone.runtime.device import Stored, Upload


def drawn(count: int) -> np.ndarray:
    """Bytes at random."""
    return np.random.default_rng(count).integers(0, 256, count, np.uint8)


def whole(stored: Stored, address: int, nbytes: int, source: int = 0) -> Upload:
    """One run of bytes of a tensor."""
    return Upload(stored, source, nbytes, address, nbytes, 1, nbytes)


def written(folder: Path, data: np.ndarray) -> Path:
    path = folder / "weights"
    path.write_bytes(data.tobytes())
    return path


def silent(_arrived: int) -> None:
    """Tell nobody."""


def tensors(path: Path, sizes: list[int], between: int, address: int) -> list[Upload]:
    """Tensors of a file, `between` bytes apart; they lie the other way round in memory."""
    uploads, at, place = [], 0, sum(sizes)
    for size in sizes:
        place -= size
        uploads.append(whole(Stored(np.zeros(0, np.uint8), (path, at)), address + place, size))
        at += size + between
    return uploads


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("between", [0, 1, 32, 256, 257, 5000])
def test_tensors_of_a_file_arrive_wherever_they_go(tmp_path, threads, between):
    sizes = [1, 4096, 0, 70_001, 5]
    data = drawn(sum(sizes) + between * len(sizes))
    memory = map_zeros(sum(sizes), large=False)
    told: list[int] = []
    path = written(tmp_path, data)
    Copies(tensors(path, sizes, between, memory.address), threads, told.append).wait()
    place, at = sum(sizes), 0
    for size in sizes:
        place -= size
        found = view_of(memory.address + place, size) if size else data[:0]
        assert np.array_equal(found, data[at : at + size])
        at += size + between
    assert told == sorted(told)
    assert told[-1] == sum(sizes)


@pytest.mark.parametrize(("between", "reads"), [(0, 1), (256, 1), (257, 3)])
def test_tensors_that_lie_together_are_one_read(tmp_path, between, reads):
    uploads = tensors(tmp_path / "absent", [10, 20, 30], between, 2**20)
    assert len(list(plan_copies(uploads[::-1]))) == reads


def test_more_targets_than_one_call_takes_arrive(tmp_path):
    data = drawn(3000)
    memory = map_zeros(data.size, large=False)
    uploads = tensors(written(tmp_path, data), [1] * data.size, 0, memory.address)
    assert len(list(plan_copies(uploads))) == 1
    Copies(uploads, 2, silent).wait()
    assert np.array_equal(view_of(memory.address, data.size), data[::-1])


def test_a_long_tensor_is_several_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "BATCH", 1000)
    data = drawn(4321)
    memory = map_zeros(data.size, large=False)
    uploads = tensors(written(tmp_path, data), [data.size], 0, memory.address)
    assert len(list(plan_copies(uploads))) == 5
    Copies(uploads, 2, silent).wait()
    assert np.array_equal(view_of(memory.address, data.size), data)


def test_one_read_is_no_longer_than_a_batch():
    absent = Path("absent")
    uploads = tensors(absent, [BATCH // 2, BATCH // 2, 1, BATCH + 1], 0, 2**20)
    ends = [(read.offset, read.end) for read in plan_copies(uploads)]
    assert ends == [
        (0, BATCH),
        (BATCH, BATCH + 1),
        (BATCH + 1, 2 * BATCH + 1),
        (2 * BATCH + 1, 2 * BATCH + 2),
    ]


def test_rows_apart_and_bytes_of_no_file_arrive():
    data = drawn(6 * 10)
    memory = map_zeros(8 * 3, large=False)
    stored = Stored(data)
    some = Upload(stored, 2, 10, memory.address, 8, 3, 4)
    Copies([some, whole(stored, memory.address + 4, 4, 50)], 2, silent).wait()
    made = view_of(memory.address, 24).reshape(3, 8)
    assert np.array_equal(made[:, :4], data.reshape(6, 10)[:3, 2:6])
    assert np.array_equal(made[0, 4:], data[50:54])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_became_shorter_is_named(tmp_path, threads):
    path = written(tmp_path, drawn(99))
    memory = map_zeros(100, large=False)
    under_way = Copies(tensors(path, [60, 40], 0, memory.address), threads, silent)
    with pytest.raises(WeightError, match=r"weights` ends 1 bytes before"):
        under_way.wait()


def test_a_file_that_is_gone_is_named(tmp_path):
    memory = map_zeros(10, large=False)
    under_way = Copies(tensors(tmp_path / "gone", [10], 0, memory.address), 2, silent)
    with pytest.raises(WeightError, match=r"gone` cannot be read: No such file"):
        under_way.wait()


def test_nothing_is_written_once_copies_are_given_up(tmp_path, monkeypatch):
    """What they write to may be gone by then: a thread that went on would end the process."""
    begun, go_on = threading.Event(), threading.Event()
    real = copies.Files.scatter

    def scatter(*args):
        begun.set()
        go_on.wait(10)
        real(*args)

    monkeypatch.setattr(copies.Files, "scatter", scatter)
    monkeypatch.setattr(copies, "BATCH", 10)
    data = drawn(40)
    memory = map_zeros(40, large=False)
    under_way = Copies(tensors(written(tmp_path, data), [10] * 4, 0, memory.address), 2, silent)
    assert begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    under_way.close()
    arrived = view_of(memory.address, 40).copy()
    assert np.array_equal(arrived[30:], data[:10])
    assert not arrived[:30].any()
    assert threading.active_count() <= 2


def test_no_copies_are_none_to_wait_for():
    told: list[int] = []
    Copies([], 4, told.append).wait()
    assert told == [0]
