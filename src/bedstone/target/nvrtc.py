"""CUDA C++ to machine code by NVRTC, which needs neither a GPU nor a toolkit.

The library comes from the wheel `nvidia-cuda-nvrtc` or is found where the system keeps it. Each
module has a process of its own, as Triton's have.
"""

import ctypes
import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import TargetError
from bedstone.target.side_by_side import Told, untold
from bedstone.target.toolchain import Compiler, Unit, unit_digest
from bedstone.target.worker import Worker, compile_apart

_SYSTEM_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
_WORKER = Path(__file__).with_name("nvrtc_worker.py")


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """The compiler: the file of its library, and its version."""

    library: Path
    version: tuple[int, int]


class _Symbol(ctypes.Structure):
    """`Dl_info`: whose file an address is of."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def find_nvrtc() -> Nvrtc:
    """The compiler of an installed wheel, else of the system.

    A machine without one is a `TargetError` that says what to install.
    """
    for name in (*_wheel_libraries(), *_SYSTEM_NAMES):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return Nvrtc(_file_of(library), (major.value, minor.value))
    raise TargetError(
        "no CUDA compiler: the `nvidia-cuda-nvrtc` package is not installed and the system has no "
        "libnvrtc; run `pip install nvidia-cuda-nvrtc`"
    )


def compile_cubins(
    units: Sequence[Unit], arch: str, *, cache: Path, nvrtc: Nvrtc, told: Told = untold
) -> tuple[Path, ...]:
    """The cubin of each unit for `arch`, compiled only where `cache` has none yet.

    Raises what `compile_apart` does.
    """

    def request(unit: Unit) -> dict[str, object]:
        return {"library": str(nvrtc.library), "options": _options(unit, arch)}

    worker = Worker(_WORKER, ("-I", "-S"), _identity(nvrtc, arch), request)
    return compile_apart(units, arch, worker, cache=cache, told=told)


def cubin_path(unit: Unit, arch: str, *, cache: Path, nvrtc: Nvrtc) -> Path:
    """Where `compile_cubins` keeps a unit's cubin, whether or not it is there."""
    return cache / f"{unit_digest(unit, Compiler((), _identity(nvrtc, arch)))}.cubin"


def _identity(nvrtc: Nvrtc, arch: str) -> str:
    return f"nvrtc {nvrtc.version[0]}.{nvrtc.version[1]} {arch}"


def _options(unit: Unit, arch: str) -> list[str]:
    (source,) = unit.sources
    return [
        f"--gpu-architecture={arch}",
        *unit.flags,
        *(f"-D{name}={value}" for name, value in sorted(unit.defines.items())),
        *(f"-I{folder.resolve()}" for folder in (*unit.include, source.parent)),
    ]


def _file_of(library: ctypes.CDLL) -> Path:
    """Where the loader found the library: by a name alone another process may find another."""
    found = _Symbol()
    ctypes.CDLL(None).dladdr(library.nvrtcVersion, ctypes.byref(found))
    return Path(os.fsdecode(found.file)).absolute()


def _wheel_libraries() -> Iterator[str]:
    """Where wheels of any CUDA version put the library, the newest first."""
    found = importlib.util.find_spec("nvidia")
    for folder in (found and found.submodule_search_locations) or ():
        yield from map(str, sorted(Path(folder).glob("*/lib/libnvrtc.so.*"), reverse=True))
