from pathlib import Path

import pytest

from bedstone.target.toolchain import find_compiler
from kernels.harness import AVAILABLE, Library


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where modules are compiled once for the whole session; workers of a parallel run share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "kernels"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def libraries(kernel_cache: Path) -> dict[str, Library]:
    compiler = find_compiler()
    return {name: Library(name, compiler, kernel_cache, {}) for name in AVAILABLE}


@pytest.fixture(params=AVAILABLE)
def library(request: pytest.FixtureRequest, libraries: dict[str, Library]) -> Library:
    return libraries[request.param]
