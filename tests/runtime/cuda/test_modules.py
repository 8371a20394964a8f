"""Functions found by the parameters they take, in modules loaded once."""

import struct

import pytest

from bedstone.errors import DeviceError, KernelError, TargetError
from bedstone.runtime.cuda.modules import Modules
from bedstone.runtime.lower import Kernel
from bedstone.spec.manifest import BufferParam, BytesParam, ScalarParam, StateParam
from cuda_fake import CUBIN, Driver, Function
from gpu_kernels import artifact

PTR, STATE = BufferParam("in", "f32"), StateParam("inout")
I32, F32, I64, U8 = (ScalarParam(type_) for type_ in ("i32", "f32", "i64", "u8"))


def container(payload):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payload)) + payload


FLOAT, DOUBLE, OTHER = (container(payload) for payload in (b"float", b"double", b"sm_70"))
FAT = FLOAT + DOUBLE + OTHER


@pytest.fixture
def driver():
    return Driver(
        {
            FLOAT: {"add": Function((8, 8, 4), None), "only": Function((8,), None)},
            DOUBLE: {"add": Function((8, 8, 8), None)},
            CUBIN: {"f": Function((8, 8, 8, 4, 4, 1, 24), None, threads=256)},
        }
    )


@pytest.mark.parametrize(("last", "sizes"), [(F32, (8, 8, 4)), (I64, (8, 8, 8))])
def test_the_layout_picks_among_functions_of_one_name(driver, last, sizes):
    modules = Modules(driver)
    found = modules.function(artifact("m", FAT), Kernel("m", "add", (PTR, PTR, last)))
    assert driver.param_sizes(found) == sizes


def test_no_layout_that_fits_lists_all_there_are(driver):
    with pytest.raises(
        KernelError,
        match=r"passes \[8, 1\] bytes, the kernel takes \[8, 8, 4\] bytes; \[8, 8, 8\] bytes",
    ):
        Modules(driver).function(artifact("m", FAT), Kernel("m", "add", (PTR, U8)))


def test_every_kind_of_parameter_has_its_size(driver):
    params = (PTR, STATE, I64, I32, F32, U8, BytesParam(24))
    assert Modules(driver).function(artifact("m", CUBIN), Kernel("m", "f", params))


def test_containers_for_other_gpus_are_left_out(driver):
    assert Modules(driver).function(artifact("m", FAT), Kernel("m", "only", (PTR,)))
    with pytest.raises(
        TargetError, match=r"GPU `Fake` \(compute capability 9\.0\): fatbin of 21 bytes: `CUDA_ERR"
    ):
        Modules(driver).function(artifact("m", OTHER), Kernel("m", "only", (PTR,)))


def test_the_same_bytes_are_loaded_once(driver):
    modules = Modules(driver)
    for name in ("m", "another name"):
        modules.function(artifact(name, FAT), Kernel(name, "only", (PTR,)))
    assert len(driver.images) == 3
    modules.close()
    assert "module" not in driver.leaks()


def test_an_entry_that_is_not_there(driver):
    with pytest.raises(KernelError, match=r"kernel `gone` of module `m` .*: .* no such function"):
        Modules(driver).function(artifact("m", FAT), Kernel("m", "gone", ()))


def test_blocks_of_more_threads_than_it_was_compiled_for(driver):
    params = (PTR, STATE, I64, I32, F32, U8, BytesParam(24))
    Modules(driver).function(artifact("m", CUBIN), Kernel("m", "f", params, (16, 4, 4)))
    with pytest.raises(KernelError, match="blocks of 512 threads, it was compiled for 256"):
        Modules(driver).function(artifact("m", CUBIN), Kernel("m", "f", params, (16, 8, 4)))


@pytest.mark.parametrize(
    ("cluster", "large"), [(None, False), ((4, 2, 1), False), ((4, 4, 1), True)]
)
def test_clusters_beyond_the_portable_size_are_allowed_for(driver, cluster, large):
    kernel = Kernel("m", "only", (PTR,), cluster=cluster)
    Modules(driver).function(artifact("m", FAT), kernel)
    assert driver.code[FLOAT]["only"].large_clusters == large


@pytest.mark.parametrize("overlaps", [False, True])
def test_launches_that_overlap_divide_a_multiprocessors_memory_alike(driver, overlaps):
    Modules(driver).function(artifact("m", FAT), Kernel("m", "only", (PTR,), overlaps=overlaps))
    assert driver.code[FLOAT]["only"].prefers_shared == overlaps


def test_an_error_of_the_driver_is_the_driver_s(driver, monkeypatch):
    def failing(_image):
        from bedstone.runtime.cuda.driver import CudaError

        raise CudaError("cuModuleLoadData", "CUDA_ERROR_ECC_UNCORRECTABLE")

    monkeypatch.setattr(driver, "load", failing)
    with pytest.raises(DeviceError, match="CUDA_ERROR_ECC_UNCORRECTABLE"):
        Modules(driver).function(artifact("m", FAT), Kernel("m", "only", (PTR,)))


@pytest.fixture
def meeting():
    """A kernel whose blocks wait for each other, on a device that holds six of them."""
    function = Function((8,), None, at_once=6, meets=True, shared=4096)
    return Driver({CUBIN: {"layer": function}})


def test_blocks_that_wait_for_each_other_have_to_run_at_once(meeting):
    modules, kernel = Modules(meeting), Kernel("m", "layer", (PTR,), block=(256, 1, 1))
    function = modules.function(artifact("m", CUBIN), kernel)
    modules.require_together(function, kernel, 6, 4096)
    with pytest.raises(TargetError, match=r"`layer` .* 7 blocks wait .* holds 6 of them at once"):
        modules.require_together(function, kernel, 7, 4096)


def test_other_blocks_may_run_one_after_the_other(driver):
    modules, kernel = Modules(driver), Kernel("m", "only", (PTR,))
    modules.require_together(modules.function(artifact("m", FAT), kernel), kernel, 1 << 30, 0)
