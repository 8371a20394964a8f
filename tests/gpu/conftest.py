"""Every test here needs a CUDA device; without one they are skipped, and only then."""

from pathlib import Path

import pytest

from bedstone.target.gpu import choose_gpu, read_gpus
from bedstone.target.hardware import read_sets

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    absent = not read_gpus()
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.gpu)
            if absent:
                item.add_marker(pytest.mark.skip(reason="the machine has no CUDA device"))


@pytest.fixture(scope="session")
def target() -> str:
    """The hardware set of the GPU."""
    return choose_gpu(0, read_gpus(), read_sets().values()).name


@pytest.fixture
def driver():
    from bedstone.runtime.cuda.bindings import open_driver

    driver = open_driver(0)
    yield driver
    driver.close()


@pytest.fixture
def device(driver):
    from bedstone.runtime.cuda.device import CudaDevice

    device = CudaDevice(driver)
    yield device
    device.close()


@pytest.fixture(scope="session")
def arch():
    """What kernels are compiled for: the GPU's own architecture, with all it has."""
    from bedstone.runtime.cuda.bindings import open_driver

    driver = open_driver(0)
    major, minor = driver.facts.capability
    driver.close()
    return f"sm_{major}{minor}" + "a" * (major >= 9)


@pytest.fixture(scope="session")
def toy_gpu(tmp_path_factory, arch):
    from dataclasses import replace

    from gpu_kernels import compiled, package
    from runtime_toy import toy_manifest

    data = compiled((_HERE / "toy.cu").read_text(), arch)
    folder = tmp_path_factory.mktemp("toy")
    return package(folder, lambda table: replace(toy_manifest("0" * 64), modules=table), toy=data)
