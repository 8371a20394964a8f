import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedstone.target.gpu import read_gpus
from bedstone.target.toolchain import find_compiler
from kernels.harness import AVAILABLE, Library

if TYPE_CHECKING:
    from kernels.gpu_library import GpuLibrary

GPU_SET = "hopper"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if read_gpus():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="the machine has no CUDA device"))


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where modules are compiled once for the whole session; workers of a parallel run share it.

    Or where `BEDSTONE_TEST_CACHE` says that compiled ones are.
    """
    if "BEDSTONE_TEST_CACHE" in os.environ:
        return Path(os.environ["BEDSTONE_TEST_CACHE"]) / "modules"
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "kernels"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def libraries(kernel_cache: Path) -> dict[str, Library]:
    compiler = find_compiler()
    return {name: Library(name, compiler, kernel_cache, {}) for name in AVAILABLE}


@pytest.fixture(scope="session")
def gpu_library(kernel_cache: Path) -> "GpuLibrary":
    """Kernels whose tables hold float32, as all of the CPU's do."""
    from kernels.gpu_library import GpuLibrary

    return GpuLibrary(GPU_SET, kernel_cache)


@pytest.fixture(scope="session")
def half_library(kernel_cache: Path) -> "GpuLibrary":
    """Kernels whose tables hold bfloat16."""
    from kernels.gpu_library import GpuLibrary

    return GpuLibrary(GPU_SET, kernel_cache, "bf16")


@pytest.fixture(params=(*AVAILABLE, pytest.param(GPU_SET, marks=pytest.mark.gpu)))
def library(request: pytest.FixtureRequest, libraries: dict[str, Library]) -> Library:
    if request.param == GPU_SET:
        return request.getfixturevalue("gpu_library")
    return libraries[request.param]
