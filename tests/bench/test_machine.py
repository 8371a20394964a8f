"""What a machine can do: measured by programs that the runtime loads as any other."""

import ctypes
from itertools import count
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bedstone.bench
from bedstone.bench.machine import SIDE, copying, measure_machine, multiplying
from bedstone.checkpoint.drawn import DrawnTensors
from bedstone.errors import TargetError
from bedstone.runtime import load as loading
from bedstone.runtime.cuda.device import CudaDevice
from bedstone.runtime.load import Parts, load
from bedstone.verify import check
from cuda_fake import Driver, Function, number, words

PTX = Path(bedstone.bench.__file__).with_name("copy.ptx")
SMALL = 64


def copy(args, grid, _block):
    source, target = map(number, args)
    ctypes.memmove(target, source, 16384 * grid[0])


class Blas:
    """Products in float32."""

    def __init__(self, *_):
        pass

    def close(self):
        pass

    def enqueuer(self, _product, _algo):
        def enqueue(given):
            a, w, c, m, n, k = given.tolist()
            left, right = (
                words(at, rows * k, ml_dtypes.bfloat16).reshape(rows, k).astype(np.float32)
                for at, rows in ((a, m), (w, n))
            )
            words(c, m * n, ml_dtypes.bfloat16)[:] = (left @ right.T).ravel()
            return 0

        return enqueue


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is this process's memory; what its library of products is can be told."""

    def open_gpu(blas=Blas):
        code = {"bedstone_copy": Function((8, 8), copy)}
        monkeypatch.setitem(
            loading._DEVICES,
            "cuda",
            lambda _: CudaDevice(Driver(code=dict.fromkeys(texts, code)), blas),
        )

    texts = (PTX.read_bytes(), PTX.read_bytes() + b"\0")
    return open_gpu


def ticks():
    """A clock that goes on by a second whenever it is read."""
    seconds = count()
    return lambda: float(next(seconds))


@pytest.mark.parametrize("side", [SMALL, SIDE])
def test_the_programs_keep_every_rule(side):
    assert check(copying(PTX, side)) == []
    assert check(multiplying(side)) == []


def test_a_copy_is_of_the_whole_weight(gpu):
    gpu()
    weights = DrawnTensors.of(a=(SMALL, SMALL))
    parts = Parts(copying(PTX, SMALL), PTX.parent)
    with load(parts, device="cuda", checkpoint=weights) as session:
        session.run("copy")
        found = session.read("y").view(np.uint8).reshape(-1)
    assert np.array_equal(found, np.tile(weights.raw(weights.tensors["a"]), 8))


def test_a_product_is_of_the_two_matrices(gpu):
    gpu()
    weights = DrawnTensors.of(a=(SMALL, SMALL), w=(SMALL, SMALL))
    with load(Parts(multiplying(SMALL)), device="cuda", checkpoint=weights) as session:
        session.run("multiply")
        found = session.read("c").astype(np.float32)
    a, w = (
        weights.raw(info).view(ml_dtypes.bfloat16).reshape(SMALL, SMALL).astype(np.float32)
        for info in weights.tensors.values()
    )
    assert np.allclose(found, a @ w.T, rtol=1e-2, atol=1e-4)


def test_rates_are_bytes_read_and_written_and_two_operations_a_multiply_add(gpu):
    gpu()
    found = measure_machine("cuda", ticks(), SMALL)
    assert found.bandwidth == 20 * 2 * 8 * 2 * SMALL**2
    assert found.operations == 5 * 2 * SMALL**3
    assert found.note is None


def test_without_the_library_of_products_memory_is_measured_all_the_same(gpu):
    def missing(*_):
        raise TargetError("there is no libcublas")

    gpu(missing)
    found = measure_machine("cuda", ticks(), SMALL)
    assert found.bandwidth > 0
    assert (found.operations, found.note) == (None, "there is no libcublas")


def test_of_a_cpu_memory_alone_is_measured():
    found = measure_machine("cpu")
    assert 1e8 < found.bandwidth < 1e13
    assert found.operations is None
