"""Where an evaluation runs: the device's name and the versions that bear on its times."""

import platform
from importlib import metadata
from pathlib import Path

import torch

from bedstone.prove.timing import cpu_flush_bytes
from bedstone.spec.release import VERSION
from bedstone.spec.trace import Environment

_LIBRARIES = ("torch", "triton", "tilelang", "numpy")
_CPU_INFO = Path("/proc/cpuinfo")
_MEMORY_INFO = Path("/proc/meminfo")


def environment(device: str) -> Environment:
    """The environment of evaluations on `cpu` or `cuda`."""
    libs = {"bedstone": VERSION, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            libs[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if device == "cuda":
        libs["cuda"] = str(torch.version.cuda)
    return Environment(hardware_name(device), libs)


def hardware_name(device: str) -> str:
    """What a Trace calls the device: the GPU's name, or the processor's with its cores."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{_processor()} x{torch.get_num_threads()}"


def _processor() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def flush_bytes(device: str) -> int:
    """Bytes to write so that the device's caches hold nothing of a call's data."""
    if device == "cuda":
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return 2 * int(properties.L2_cache_size)
    return cpu_flush_bytes()


def free_memory() -> int:
    """Bytes of this machine's memory that can still be had."""
    for line in _MEMORY_INFO.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return 2**62
