"""Triton source to machine code ahead of time, which needs neither a GPU nor a driver.

A source is one Python file with one kernel: a function under `triton.jit` whose name does not begin
with an underscore, each parameter annotated with its type (`"*fp32"`, `"i32"`, `tl.constexpr`). It
is code, so it runs in a process of its own that is given nothing of this one's environment. Cubins
are kept by what they were made from.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import KernelError, TargetError
from bedstone.target.architecture import parse_arch
from bedstone.target.cache import write_whole
from bedstone.target.side_by_side import Told, side_by_side, untold
from bedstone.target.toolchain import Compiler, Unit, unit_digest

REFUSED = 3
"""What the worker exits with where the source is at fault; its output says how."""

_WORKER = Path(__file__).with_name("triton_worker.py")
_MESSAGE_LINES = 8
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Triton:
    """An installed compiler: its version and the directory it is imported from."""

    version: str
    site: Path


def find_triton() -> Triton:
    """The installed compiler; where there is none a `TargetError` that says what to install."""
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        raise TargetError(
            "no Triton compiler: the `triton` package is not installed; run `pip install triton`"
        )
    return Triton(importlib.metadata.version("triton"), Path(found.origin).parent.parent)


def compile_triton(
    units: Sequence[Unit], arch: str, *, cache: Path, triton: Triton, told: Told = untold
) -> tuple[Path, ...]:
    """The cubin of each unit for `arch`, compiled only where `cache` has none yet.

    A define gives a `tl.constexpr` its value, or one of `num_warps`, `num_stages`, `num_ctas` and
    `shared` (the bytes a launch gives a block, 0 unless it says).
    A source that does not compile is a `KernelError` that shows the kernel's own line.
    """
    worker = hashlib.sha256(_WORKER.read_bytes()).hexdigest()
    identity = Compiler((), f"triton {triton.version} {arch} {worker}")

    def build(unit: Unit) -> Path:
        built = cache / f"{unit_digest(unit, identity)}.cubin"
        if not built.exists():
            write_whole(built, _compile(unit, arch, triton))
        return built

    return side_by_side(build, units, told)


def _compile(unit: Unit, arch: str, triton: Triton) -> bytes:
    (source,) = unit.sources
    parsed = parse_arch(arch)
    if parsed is None:
        raise KernelError(f"`{source.name}` is Triton source, which is not compiled for `{arch}`")
    with tempfile.TemporaryDirectory(prefix="bedstone-triton-") as scratch:
        output = Path(scratch) / "kernel.cubin"
        request = {
            "source": str(source.resolve()),
            "capability": 10 * parsed.major + parsed.minor,
            "defines": dict(unit.defines),
            "output": str(output),
        }
        fault = _run(request, triton, Path(scratch))
        if fault is None and output.exists():
            return output.read_bytes()
        why = fault or "its process ended and left no code"
        raise KernelError(f"`{source.name}` does not compile for `{arch}`:\n{why}")


def _run(request: dict[str, object], triton: Triton, scratch: Path) -> str | None:
    """Run the worker in a folder that is gone afterwards; what it says where it fails."""
    environment = {
        "HOME": str(scratch),
        "PYTHONPATH": str(triton.site),
        "TRITON_CACHE_DIR": str(scratch / "cache"),
        # line numbers would carry paths of this machine, and a fused multiply-add another rounding
        "TRITON_DISABLE_LINE_INFO": "1",
        "TRITON_DEFAULT_FP_FUSION": "0",
    }
    try:
        # this interpreter and a file of ours; no shell reads it
        done = subprocess.run(  # noqa: S603
            (sys.executable, "-P", "-s", "-W", "ignore", str(_WORKER)),
            input=json.dumps(request),
            env=environment,
            cwd=scratch,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {_SECONDS} s"
    if done.returncode == REFUSED:
        return "\n".join(done.stdout.strip().splitlines()[:_MESSAGE_LINES])
    if done.returncode:
        return "\n".join(done.stderr.strip().splitlines()[-_MESSAGE_LINES:])
    return None
