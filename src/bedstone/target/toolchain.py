"""The C compiler of this machine, and shared objects kept by what they were made from.

An object's name in the cache is the sha256 of everything that decides its bytes: the sources, every
header they could include, the flags and the compiler. The same inputs give the same bytes, so a
module's identity can be the sha256 of its file.
"""

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bedstone.errors import KernelError, TargetError
from bedstone.target.cache import made_once, unwritable
from bedstone.target.side_by_side import Told, side_by_side, untold

_COMPILERS = ("cc", "gcc", "clang")
_MESSAGE_LINES = 8
_HEADERS = frozenset({".h", ".cuh"})
_FIXED_FLAGS = (
    "-std=c11",
    "-shared",
    "-fPIC",
    "-g0",
    "-frandom-seed=bedstone",
    "-Wl,--build-id=none",
    "-Wl,-z,defs",
    "-Wl,-s",
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A command that compiles C, and what tells it from another one.

    `flags` come before a caller's: they turn off what this compiler assumes of its host.
    """

    command: tuple[str, ...]
    identity: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """What one shared object is made from; `include` directories are searched in order.

    `link` is for the linker, behind the sources, since libraries serve what stands before them.
    """

    sources: tuple[Path, ...]
    flags: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    include: tuple[Path, ...] = ()
    link: tuple[str, ...] = ()


def find_compiler(*, which: Callable[[str], str | None] = shutil.which) -> Compiler:
    """The system's C compiler, else the one inside the `ziglang` package.

    Raises `TargetError`: the machine has neither, the message says what to install; or its system
    is one whose shared objects are others.
    """
    if platform.system() != "Linux":
        raise TargetError(f"kernels are compiled and run on Linux; this is `{platform.system()}`")
    for name in _COMPILERS:
        path = which(name)
        if path is not None:
            return Compiler((path,), _version((path,)))
    if importlib.util.find_spec("ziglang") is not None:
        from importlib.metadata import version  # noqa: PLC0415 - slow to load

        zig = version("ziglang")
        # zig compiles for the host's own CPU and with trapping checks unless told otherwise
        flags = ("-mcpu=baseline", "-fno-sanitize=undefined")
        return Compiler(
            (sys.executable, "-m", "ziglang", "cc"), f"zig cc {zig} {platform.machine()}", flags
        )
    raise TargetError(
        f"no C compiler: none of `{'`, `'.join(_COMPILERS)}` is on PATH and the "
        "`ziglang` package is not installed; run `pip install ziglang` or install a C compiler "
        "(`apt-get install gcc libc6-dev`)"
    )


def compile_unit(unit: Unit, *, cache: Path, compiler: Compiler) -> Path:
    """The unit's shared object, compiled only where `cache` has none yet.

    Raises `KernelError`: the compiler rejects the sources; `TargetError`: the compiler cannot be
    run; `CallerError`: `cache` cannot be written.
    """
    built = shared_path(unit, cache=cache, compiler=compiler)
    try:
        return made_once(built, lambda: _compile(unit, compiler, built))
    except OSError as error:
        raise unwritable(cache, error) from error


def _compile(unit: Unit, compiler: Compiler, built: Path) -> None:
    """Compile beside `built`, then put the object there: nobody sees half of it."""
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent, prefix=".build-") as scratch:
        # the linker may record the output's name: it is the same in every build
        made = Path(scratch) / "kernels.so"
        _run(command_line(unit, compiler, made), unit.sources)
        os.replace(made, built)


def compile_many(
    units: Sequence[Unit], *, cache: Path, compiler: Compiler, told: Told = untold
) -> tuple[Path, ...]:
    """`compile_unit` of each, as many at a time as this process may use cores.

    Raises what `compile_unit` does.
    """
    return side_by_side(partial(compile_unit, cache=cache, compiler=compiler), units, told)


def shared_path(unit: Unit, *, cache: Path, compiler: Compiler) -> Path:
    """Where `cache` keeps the unit's shared object, there or not."""
    return cache / f"{unit_digest(unit, compiler)}.so"


def unit_digest(unit: Unit, compiler: Compiler) -> str:
    """The sha256, in hex, of everything that decides the bytes of the unit's shared object."""
    digest = hashlib.sha256()
    for text in (
        compiler.identity,
        *compiler.flags,
        "\n",
        *_FIXED_FLAGS,
        *unit.flags,
        *_defines(unit),
        *(("\n", *unit.link) if unit.link else ()),
    ):
        _feed(digest, text.encode())
    for source in unit.sources:
        _feed(digest, source.name.encode())
        _feed(digest, source.read_bytes())
    for directory in (*{source.parent: None for source in unit.sources}, *unit.include):
        _feed(digest, b"include")
        for header in sorted(path for path in directory.iterdir() if path.suffix in _HEADERS):
            _feed(digest, header.name.encode())
            _feed(digest, header.read_bytes())
    return digest.hexdigest()


def command_line(unit: Unit, compiler: Compiler, output: Path) -> tuple[str, ...]:
    """The compiler's argument vector for `unit`; no path of this machine reaches the output."""
    folders = {path.resolve(): None for path in (*(s.parent for s in unit.sources), *unit.include)}
    return (
        *compiler.command,
        *compiler.flags,
        *_FIXED_FLAGS,
        *(f"-ffile-prefix-map={folder}=." for folder in folders),
        *unit.flags,
        *_defines(unit),
        *(f"-I{path.resolve()}" for path in unit.include),
        *(str(source.resolve()) for source in unit.sources),
        *unit.link,
        "-o",
        str(output),
    )


def _defines(unit: Unit) -> tuple[str, ...]:
    return tuple(f"-D{name}={value}" for name, value in sorted(unit.defines.items()))


def _feed(digest: "hashlib._Hash", data: bytes) -> None:
    """Add `data` with its length, so that two fields never run together."""
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)


def _version(command: tuple[str, ...]) -> str:
    """What the compiler calls itself and the machine it compiles for."""
    return (
        _output((*command, "--version")).partition("\n")[0]
        + " "
        + _output((*command, "-dumpmachine"))
    )


def _output(command: tuple[str, ...]) -> str:
    return _spawn(command).stdout.strip()


def _run(command: tuple[str, ...], sources: Sequence[Path]) -> None:
    done = _spawn(command)
    if done.returncode:
        first = "\n".join(done.stderr.strip().splitlines()[:_MESSAGE_LINES])
        names = ", ".join(f"`{source.name}`" for source in sources)
        raise KernelError(f"{names} does not compile with `{' '.join(command[:1])}`:\n{first}")


def _spawn(command: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    try:
        # the command is a compiler found on PATH and arguments built above; no shell reads it
        return subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise TargetError(f"the C compiler `{command[0]}` cannot be run: {error}") from error
