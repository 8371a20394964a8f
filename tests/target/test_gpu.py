"""The GPUs a driver knows, and which sets they run."""

from pathlib import Path

import pytest

from bedstone.errors import DeviceError, TargetError
from bedstone.target.gpu import Gpu, choose_gpu, read_gpus, refuses_gpu
from bedstone.target.hardware import read_sets
from bedstone.target.toolchain import Unit, compile_unit, find_compiler

SETS = read_sets()

DRIVER = """
static const int major[] = {%s}, minor[] = {%s};
int cuInit(unsigned flags) { return flags ? 1 : %d; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = sizeof major / sizeof *major; return %d; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal + 100; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = (attribute == 75 ? major : minor)[device - 100];
    return attribute == 75 || attribute == 76 ? 0 : 1;
}
"""


def driver(folder: Path, major: str, minor: str, started: int = 0, counted: int = 0) -> str:
    """A driver library that knows devices of these capabilities."""
    source = folder / "cuda.c"
    source.write_text(DRIVER % (major, minor, started, counted))
    return str(compile_unit(Unit((source,)), cache=folder / "cache", compiler=find_compiler()))


def test_devices_are_asked_one_by_one(tmp_path):
    assert read_gpus(driver(tmp_path, "9, 12", "0, 1")) == (
        Gpu(0, (9, 0), (12, 4)),
        Gpu(1, (12, 1), (12, 4)),
    )


def test_a_machine_without_driver_or_device_has_none(tmp_path):
    assert read_gpus("libnothing-of-the-kind.so.1") == ()
    assert read_gpus(driver(tmp_path, "0", "0", started=100)) == ()


@pytest.mark.parametrize(("started", "counted", "call"), [(3, 0, "cuInit"), (0, 7, "GetCount")])
def test_a_driver_that_fails_is_an_error_and_no_guess(tmp_path, started, counted, call):
    with pytest.raises(DeviceError, match=f"{call}.*error {started or counted}"):
        read_gpus(driver(tmp_path, "9", "0", started, counted))


def test_a_device_without_a_capability_is_an_error(tmp_path):
    with pytest.raises(DeviceError, match=r"GPU 0 .* 0\.0"):
        read_gpus(driver(tmp_path, "0", "0"))


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((9, 0), "hopper"), ((8, 9), "ada"), ((8, 6), "cuda-generic"), ((10, 0), "blackwell"),
        ((12, 1), "gb10"),
    ],
)  # fmt: skip
def test_a_gpu_gets_the_set_of_the_newest_architecture_it_runs(capability, name):
    gpus = [Gpu(0, (7, 5), (12, 4)), Gpu(1, capability, (12, 4))]
    assert choose_gpu(1, gpus, SETS.values()).name == name
    with pytest.raises(TargetError, match=r"GPU 0, whose capability is 7\.5"):
        choose_gpu(0, gpus, SETS.values())
    with pytest.raises(TargetError, match="no GPU 2: the driver of this machine knows 2"):
        choose_gpu(2, gpus, SETS.values())
    with pytest.raises(TargetError, match="no NVIDIA GPU, or no driver"):
        choose_gpu(0, [], SETS.values())


def test_a_set_is_refused_with_the_one_that_fits():
    hopper, gb10 = Gpu(0, (9, 0), (12, 4)), Gpu(1, (12, 1), (12, 4))
    assert refuses_gpu(SETS["hopper"], [hopper], SETS.values()) is None
    assert refuses_gpu(SETS["hopper"], [gb10, hopper], SETS.values()) is None
    refusal = refuses_gpu(SETS["blackwell"], [hopper, gb10], SETS.values())
    assert refusal == (
        "GPU 0: cubin for `sm_100a` runs only on 10.0; the device is 9.0, which runs `hopper`; "
        "GPU 1: cubin for `sm_100a` runs only on 10.0; the device is 12.1, which runs `gb10`"
    )
    assert "no set there is" in (
        refuses_gpu(SETS["hopper"], [Gpu(0, (12, 0), (12, 4))], SETS.values()) or ""
    )
    assert refuses_gpu(SETS["hopper"], [], SETS.values()) == "this machine has no NVIDIA GPU"
