"""CUDA C++ to machine code by NVRTC, which needs neither a GPU nor a toolkit.

The library comes from the wheel `nvidia-cuda-nvrtc` or is found where the system keeps it. Cubins
are kept by what they were made from, as shared objects are.
"""

import ctypes
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import KernelError, TargetError
from bedstone.target.cache import write_whole
from bedstone.target.side_by_side import Told, side_by_side, untold
from bedstone.target.toolchain import Compiler, Unit, unit_digest

_SYSTEM_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
_MESSAGE_LINES = 8


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """The loaded compiler and its version."""

    library: ctypes.CDLL
    version: tuple[int, int]


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
        return Nvrtc(library, (major.value, minor.value))
    raise TargetError(
        "no CUDA compiler: the `nvidia-cuda-nvrtc` package is not installed and the system has no "
        "libnvrtc; run `pip install nvidia-cuda-nvrtc`"
    )


def compile_cubins(
    units: Sequence[Unit], arch: str, *, cache: Path, nvrtc: Nvrtc, told: Told = untold
) -> tuple[Path, ...]:
    """The cubin of each unit for `arch`, compiled only where `cache` has none yet.

    Sources that do not compile are a `KernelError` that shows the compiler's first lines.
    """
    identity = Compiler((), f"nvrtc {nvrtc.version[0]}.{nvrtc.version[1]} {arch}")

    def build(unit: Unit) -> Path:
        built = cache / f"{unit_digest(unit, identity)}.cubin"
        if not built.exists():
            write_whole(built, _compile(unit, arch, nvrtc.library))
        return built

    return side_by_side(build, units, told)


def _compile(unit: Unit, arch: str, library: ctypes.CDLL) -> bytes:
    (source,) = unit.sources
    options = [
        f"--gpu-architecture={arch}",
        *unit.flags,
        *(f"-D{name}={value}" for name, value in sorted(unit.defines.items())),
        *(f"-I{folder.resolve()}" for folder in (*unit.include, source.parent)),
    ]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    program = ctypes.c_void_p()
    text, name = source.read_bytes(), source.name.encode()
    library.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None)
    try:
        if library.nvrtcCompileProgram(program, len(options), given):
            log = _output(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            first = "\n".join(log.strip().splitlines()[:_MESSAGE_LINES])
            raise KernelError(f"`{source.name}` does not compile for `{arch}`:\n{first}")
        return _output(library, program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _output(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    library[f"nvrtcGet{what}Size"](program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    library[f"nvrtcGet{what}"](program, buffer)
    return buffer.raw


def _wheel_libraries() -> Iterator[str]:
    """Where wheels of any CUDA version put the library, the newest first."""
    found = importlib.util.find_spec("nvidia")
    for folder in (found and found.submodule_search_locations) or ():
        yield from map(str, sorted(Path(folder).glob("*/lib/libnvrtc.so.*"), reverse=True))
