"""Triton source to machine code ahead of time, which needs neither a GPU nor a driver.

A source is one Python file with one kernel: a function under `triton.jit` whose name does not begin
with an underscore, each parameter annotated with its type (`"*fp32"`, `"i32"`, `tl.constexpr`). It
is code, so it runs in a process of its own that is given nothing of this one's environment. Cubins
are kept by what they were made from.
"""

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bedstone.errors import KernelError, TargetError
from bedstone.target.architecture import parse_arch
from bedstone.target.side_by_side import Told, untold
from bedstone.target.toolchain import Unit
from bedstone.target.worker import Worker, compile_apart

_WORKER = Path(__file__).with_name("triton_worker.py")


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
    Raises what `compile_apart` does; a source's error shows the kernel's own line.
    """

    def request(unit: Unit) -> dict[str, object]:
        (source,) = unit.sources
        parsed = parse_arch(arch)
        if parsed is None:
            raise KernelError(
                f"`{source.name}` is Triton source, which is not compiled for `{arch}`"
            )
        return {"capability": 10 * parsed.major + parsed.minor, "defines": dict(unit.defines)}

    script = hashlib.sha256(_WORKER.read_bytes()).hexdigest()
    identity = f"triton {triton.version} {arch} {script}"
    environment = partial(_environment, triton)
    worker = Worker(_WORKER, ("-P", "-s", "-W", "ignore"), identity, request, environment)
    return compile_apart(units, arch, worker, cache=cache, told=told)


def _environment(triton: Triton, scratch: Path) -> dict[str, str]:
    return {
        "HOME": str(scratch),
        "PYTHONPATH": str(triton.site),
        "TRITON_CACHE_DIR": str(scratch / "cache"),
        # line numbers would carry paths of this machine, and a fused multiply-add another rounding
        "TRITON_DISABLE_LINE_INFO": "1",
        "TRITON_DEFAULT_FP_FUSION": "0",
    }
