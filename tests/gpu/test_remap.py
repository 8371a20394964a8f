"""Memory that goes from state to state under addresses that stay, while steps run."""

from pathlib import Path

import numpy as np
import pytest

from bedstone.runtime.device import StateNeed
from bedstone.runtime.load import load
from gpu_kernels import compiled, package
from remapped import LOADED, SHAPE, serve_by_turns
from served_toy import served_manifest

MIB = 2**20
"""Of a token, so that pages and slots of 4 MiB lie in two chunks each."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory, arch):
    source = (Path(__file__).parent / "served.cu").read_text()
    data = compiled(f"#define WORDS {MIB // 8}\n{source}", arch)
    sizes = {"line": 4 * MIB, "token_bytes": MIB}
    folder = tmp_path_factory.mktemp("served")
    return package(
        folder, lambda table: served_manifest(table["served"].sha256, **SHAPE, **sizes), served=data
    )


@pytest.fixture
def session(parts):
    with load(parts, device="cuda", **LOADED) as session:
        yield session


@pytest.mark.parametrize(("reuse", "host_bytes"), [(False, 0), (True, 0), (True, 2**28)])
def test_many_short_sequences_and_few_long_ones_by_turns(session, reuse, host_bytes):
    free = session.loaded.device.free_bytes()
    serve_by_turns(session, reuse=reuse, turns=3, host_bytes=host_bytes)
    # recordings of steps take some
    assert session.loaded.device.free_bytes() >= free - 16 * MIB


def test_bytes_of_others_stay_and_what_comes_is_zero(device):
    chunk = device.granule
    needs = [StateNeed(6 * chunk, 64), StateNeed(3 * chunk, 64)]
    one, two = device.allocate_states(needs, chunk)
    data = np.random.default_rng(5).integers(1, 256, 9 * chunk, np.uint8)
    device.write(one.address, data[: 6 * chunk])
    device.write(two.address, data[6 * chunk :])
    free = device.free_bytes()
    moves = [(one.address + at * chunk, two.address + to * chunk) for at, to in ((5, 3), (2, 7))]
    # what is asked for before goes first, also where it reads what is about to go
    device.copy(two.address, one.address + 5 * chunk, chunk)
    remap = device.remap(moves, chunk)
    device.copy(one.address, one.address + chunk, chunk)
    remap.wait()
    assert remap.ready
    for _, place in moves:
        assert not device.read(place, chunk).any()
        device.write(place, data[:chunk])
        assert np.array_equal(device.read(place, chunk), data[:chunk])
    assert np.array_equal(device.read(two.address, chunk), data[5 * chunk : 6 * chunk])
    assert np.array_equal(device.read(one.address, chunk), data[chunk : 2 * chunk])
    assert np.array_equal(device.read(one.address + 3 * chunk, chunk), data[3 * chunk : 4 * chunk])
    back = device.remap([(there, here) for here, there in moves], chunk)
    back.wait()
    assert not device.read(one.address + 2 * chunk, chunk).any()
    assert device.free_bytes() == free


def test_a_device_that_is_closed_lets_a_remap_end(driver):
    from bedstone.runtime.cuda.bindings import open_driver
    from bedstone.runtime.cuda.device import CudaDevice

    free = driver.free_bytes()
    device = CudaDevice(open_driver(0))
    chunk = 16 * device.granule
    one, two = device.allocate_states([StateNeed(8 * chunk, 64)] * 2, chunk)
    device.remap([(one.address, two.address + 8 * chunk)], chunk)
    device.close()
    assert driver.free_bytes() >= free - 2**26
