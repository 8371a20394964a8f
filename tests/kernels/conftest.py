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
def libraries(modules: Path) -> dict[str, Library]:
    compiler = find_compiler()
    return {name: Library(name, compiler, modules, {}) for name in AVAILABLE}


@pytest.fixture(scope="session")
def gpu_library(modules: Path) -> "GpuLibrary":
    """Kernels whose tables hold float32, as all of the CPU's do."""
    from kernels.gpu_library import GpuLibrary

    return GpuLibrary(GPU_SET, modules)


@pytest.fixture(scope="session")
def half_library(modules: Path) -> "GpuLibrary":
    """Kernels whose tables hold bfloat16."""
    from kernels.gpu_library import GpuLibrary

    return GpuLibrary(GPU_SET, modules, "bf16")


@pytest.fixture(params=(*AVAILABLE, pytest.param(GPU_SET, marks=pytest.mark.gpu)))
def library(request: pytest.FixtureRequest, libraries: dict[str, Library]) -> Library:
    if request.param == GPU_SET:
        return request.getfixturevalue("gpu_library")
    return libraries[request.param]
