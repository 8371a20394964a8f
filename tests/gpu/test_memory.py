"""Weights on their way to the GPU, states behind addresses, and what memory there is."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bedstone.errors import CapacityError, WeightError
from bedstone.runtime.cuda.upload import BLOCK_BYTES, Uploader
from bedstone.runtime.device import StateNeed, Stored, Upload

SEED = np.random.default_rng(3)


@pytest.fixture
def stored(tmp_path):
    """A tensor of 40 MiB in the middle of a file, and the bytes themselves."""
    data = SEED.integers(0, 256, 40 * 2**20, np.uint8)
    path = tmp_path / "weights"
    path.write_bytes(bytes(100) + data.tobytes() + bytes(50))
    return Stored(data, (path, 100)), data


def uploaded(device, upload, nbytes):
    memory = device.allocate(nbytes)
    told = []
    device.upload([replace(upload, address=memory.address + upload.address)], told.append).wait()
    assert told == sorted(told)
    return device.read(memory.address, nbytes)


@pytest.mark.parametrize("mapped", [True, False])
def test_one_run_of_bytes(device, stored, mapped):
    held, data = stored
    held = replace(held, file=None) if mapped else held
    size = 33 * 2**20 + 7
    upload = Upload(held, 1001, size, 13, size, 1, size)
    found = uploaded(device, upload, size + 13)
    assert np.array_equal(found[13:], data[1001 : 1001 + size])
    assert not found[:13].any()


@pytest.mark.parametrize("pitch", [3000, BLOCK_BYTES + 1, 2**20])
def test_rows_of_a_matrix(device, stored, pitch):
    held, data = stored
    rows, width = min(900, data.size // pitch - 1), min(2500, pitch)
    upload = Upload(held, 17, pitch, 0, width + 12, rows, width)
    found = uploaded(device, upload, rows * (width + 12)).reshape(rows, width + 12)
    want = data[17 : 17 + rows * pitch].reshape(rows, pitch)[:, :width]
    assert np.array_equal(found[:, :width], want)
    assert not found[:, width:].any()


def test_a_file_that_was_cut_is_refused(device, stored, tmp_path):
    held, data = stored
    path, _ = held.file
    path.write_bytes(path.read_bytes()[: 30 * 2**20])
    memory = device.allocate(data.size)
    upload = Upload(held, 0, data.size, memory.address, data.size, 1, data.size)
    with pytest.raises(WeightError, match="the file changed after it was opened"):
        device.upload([upload], lambda _: None).wait()
    missing = replace(upload, stored=Stored(data, (tmp_path / "gone", 0)))
    with pytest.raises(WeightError, match=r"`.*gone` cannot be read: No such file"):
        device.upload([missing], lambda _: None).wait()


def test_many_readers_of_many_pieces(driver, device, stored):
    held, data = stored
    memory = device.allocate(data.size)
    cuts = [0, *sorted(SEED.choice(data.size, 200, replace=False).tolist()), data.size]
    uploads = [
        Upload(held, left, right - left, memory.address + left, right - left, 1, right - left)
        for left, right in pairwise(cuts)
    ]
    Uploader(driver, 16).run(uploads, lambda _: None)
    assert np.array_equal(device.read(memory.address, data.size), data)


def test_states_are_zero_and_stay_where_they_are(device):
    granule = device.granule
    needs = [StateNeed(5 * granule + 3, 4096), StateNeed(100, 0), StateNeed(granule, 64)]
    first, fixed, second = device.allocate_states(needs, granule)
    assert first.reserved == second.reserved == 7 * granule
    for memory in (first, fixed, second):
        assert not device.read(memory.address, memory.nbytes).any()
        data = SEED.integers(0, 256, memory.nbytes, np.uint8)
        device.write(memory.address, data)
        assert np.array_equal(device.read(memory.address, memory.nbytes), data)
    device.clear(first.address + 5, 10)
    assert not device.read(first.address + 5, 10).any()


def test_memory_given_back_can_be_had_again(device):
    free = device.free_bytes()
    memory = device.allocate(2**30)
    assert device.free_bytes() <= free - 2**30
    device.release(memory)
    assert device.free_bytes() >= free - 2**26


def test_more_than_there_is_is_a_matter_of_capacity(device):
    with pytest.raises(CapacityError, match="bytes of device memory are left"):
        device.allocate(2**50)
    chunk = 2**30 * 8
    with pytest.raises(CapacityError, match="bytes of states are not to be had"):
        device.allocate_states([StateNeed(2**45, 4096)], chunk)


def test_host_memory_is_the_device_s_too(device):
    memory = device.allocate_host(2**20)
    data = SEED.integers(0, 256, 2**20, np.uint8)
    device.write(memory.address, data)
    assert np.array_equal(device.read(memory.address, 2**20), data)


def test_everything_is_given_back(driver):
    from bedstone.runtime.cuda.bindings import open_driver
    from bedstone.runtime.cuda.device import CudaDevice

    free = driver.free_bytes()
    device = CudaDevice(open_driver(0))
    device.allocate(2**30)
    device.allocate_inputs(2**20)
    device.allocate_states([StateNeed(2**30, 4096)], device.granule)
    states = device.free_bytes()
    assert states < free - 2 * 2**30
    device.close()
    assert driver.free_bytes() >= free - 2**26
