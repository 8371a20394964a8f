"""The NVIDIA GPUs of this machine, asked of the driver itself by device number."""

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bedstone.errors import DeviceError, TargetError
from bedstone.target.architecture import (
    Capability,
    fitting,
    parse_arch,
    runs,
    spelled_capability,
    unfit,
)
from bedstone.target.hardware import HardwareSet

_DRIVER = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76
_NO_DEVICE = 100


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device, and the CUDA version of its driver."""

    ordinal: int
    capability: Capability
    driver: tuple[int, int]


def read_gpus(name: str = _DRIVER) -> tuple[Gpu, ...]:
    """Every GPU the driver knows; none where there is no driver.

    A driver that fails is a `DeviceError`: what a device is, is never guessed.
    """
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return ()
    started = driver.cuInit(0)
    if started == _NO_DEVICE:
        return ()
    _require(started, "cuInit")
    version, count = ctypes.c_int(), ctypes.c_int()
    _require(driver.cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    _require(driver.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    cuda = (version.value // 1000, version.value % 1000 // 10)
    return tuple(Gpu(at, _capability(driver, at), cuda) for at in range(count.value))


def refuses_gpu(
    hardware: HardwareSet, gpus: Sequence[Gpu], sets: Iterable[HardwareSet]
) -> str | None:
    """Why no GPU here runs a set, and which of `sets` they do run; None where one does."""
    if not gpus:
        return "this machine has no NVIDIA GPU"
    why = {gpu: unfit(hardware.arch, "cubin", gpu.capability) for gpu in gpus}
    if None in why.values():
        return None
    archs = [(each.name, each.arch) for each in sets if each.vendor == "nvidia"]
    return "; ".join(
        f"GPU {gpu.ordinal}: {refusal}, which runs {_listed(fitting(gpu.capability, archs))}"
        for gpu, refusal in why.items()
    )


def choose_gpu(ordinal: int, gpus: Sequence[Gpu], sets: Iterable[HardwareSet]) -> HardwareSet:
    """The set made for one of the GPUs here: of those it runs, that of the newest architecture.

    A `TargetError` where there is no such GPU, or no set that it runs.
    """
    gpu = next((each for each in gpus if each.ordinal == ordinal), None)
    if not gpus:
        raise TargetError("this machine has no NVIDIA GPU, or no driver for it")
    if gpu is None:
        raise TargetError(f"no GPU {ordinal}: the driver of this machine knows {len(gpus)}")
    able = {
        arch.capability: each
        for each in sets
        if each.vendor == "nvidia"
        and (arch := parse_arch(each.arch)) is not None
        and runs(arch, "cubin", gpu.capability)
    }
    if not able:
        spelled = spelled_capability(gpu.capability)
        raise TargetError(f"no hardware set is for GPU {ordinal}, whose capability is {spelled}")
    return able[max(able)]


def _capability(driver: ctypes.CDLL, ordinal: int) -> Capability:
    major, minor = (_attribute(driver, ordinal, attribute) for attribute in (_MAJOR, _MINOR))
    if major <= 0:
        found = spelled_capability((major, minor))
        raise DeviceError(f"GPU {ordinal} says that its compute capability is {found}")
    return major, minor


def _attribute(driver: ctypes.CDLL, ordinal: int, attribute: int) -> int:
    value = ctypes.c_int()
    device = ctypes.c_int()
    _require(driver.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
    code = driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    _require(code, "cuDeviceGetAttribute")
    return value.value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "no set there is"


def _require(code: int, call: str) -> None:
    if code:
        raise DeviceError(f"the CUDA driver fails `{call}` with error {code}")
