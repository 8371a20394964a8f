"""Modules that a compiler makes in a process of its own each, kept by what they were made from.

Where such a process dies this one lives and says of which module, and the hundreds of megabytes it
took are given back. A worker is a script that reads a request from its input and writes the module
where that says.
"""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import KernelError, TargetError
from bedstone.target.cache import made_once, write_whole
from bedstone.target.side_by_side import Told, side_by_side
from bedstone.target.toolchain import Compiler, Unit, unit_digest

REFUSED = 3
"""What a worker exits with where the source is at fault; its output says how."""

_MESSAGE_LINES = 8
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Worker:
    """A script, the interpreter's options for it, and what tells its modules from others.

    `request` is what it is told of a unit beside its source and output. `environment`, of a folder
    that is gone afterwards, is all it sees of one; without it, it sees this process's.
    """

    script: Path
    options: tuple[str, ...]
    identity: str
    request: Callable[[Unit], Mapping[str, object]]
    environment: Callable[[Path], Mapping[str, str]] | None = None


def compile_apart(
    units: Sequence[Unit], arch: str, worker: Worker, *, cache: Path, told: Told
) -> tuple[Path, ...]:
    """The cubin of each unit for `arch`; a process for each that `cache` has not yet.

    Raises `KernelError`: a source does not compile, the first lines say why; `TargetError`: a
    process cannot be started, or was ended by a signal; `CallerError`: `cache` cannot be written.
    """
    identity = Compiler((), worker.identity)

    def build(unit: Unit) -> Path:
        built = cache / f"{unit_digest(unit, identity)}.cubin"
        return made_once(built, lambda: write_whole(built, _made(unit, arch, worker)))

    return side_by_side(build, units, told)


def _made(unit: Unit, arch: str, worker: Worker) -> bytes:
    (source,) = unit.sources
    name, purpose = f"`{source.name}`", _purpose(unit, arch)
    with tempfile.TemporaryDirectory(prefix="bedstone-compile-") as scratch:
        output = Path(scratch) / "kernel.cubin"
        request = {"source": str(source.resolve()), "output": str(output), **worker.request(unit)}
        fault = _run(worker, request, Path(scratch), f"{name} {purpose}")
        if fault is None and output.exists():
            return output.read_bytes()
    why = fault or "its process ended and left no code"
    raise KernelError(f"{name} does not compile {purpose}:\n{why}")


def _run(worker: Worker, request: Mapping[str, object], scratch: Path, name: str) -> str | None:
    """Run the worker in a folder that is gone afterwards; what it says where it fails."""
    try:
        # this interpreter and a file of ours; no shell reads it
        done = subprocess.run(  # noqa: S603
            (sys.executable, *worker.options, str(worker.script)),
            input=json.dumps(request),
            env=worker.environment and worker.environment(scratch),
            cwd=scratch,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {_SECONDS} s"
    except OSError as error:
        raise TargetError(f"{name}: its compiler's process cannot be started: {error}") from error
    if done.returncode < 0:
        raise TargetError(
            f"{name}: its compiler's process was ended by a signal "
            f"(`{signal.strsignal(-done.returncode)}`); where memory ran out, allow fewer at a "
            "time: as many run as this process may use cores (`taskset`)"
        )
    if done.returncode == REFUSED:
        return "\n".join(done.stdout.strip().splitlines()[:_MESSAGE_LINES])
    if done.returncode:
        return "\n".join(done.stderr.strip().splitlines()[-_MESSAGE_LINES:])
    return None


def _purpose(unit: Unit, arch: str) -> str:
    """What the code is for, and the defines that tell it from others of its source."""
    defines = " ".join(f"{name}={value}" for name, value in sorted(unit.defines.items()))
    return f"for `{arch}`" + (f" with `{defines}`" if defines else "")
