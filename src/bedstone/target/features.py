"""CPU features: what a machine has, and what a module was compiled for."""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from bedstone.target.elf import Elf, parse_elf, text_at

_NEEDS = "bs_needs"


def needs_of(elf: Elf) -> frozenset[str]:
    """The features that a shared object states it was compiled for."""
    texts = (text_at(symbol.data) for symbol in elf.symbols if symbol.name == _NEEDS)
    return frozenset(name for text in texts for name in text.split())


def stated_needs(module: str, data: bytes) -> frozenset[str]:
    """The CPU features that a shared object was compiled for; `KernelError` where it is none."""
    return needs_of(parse_elf(data, module))


def lacks(module: str, needs: frozenset[str], features: frozenset[str]) -> str | None:
    """Why a CPU with these features must not call a module that needs others; else None."""
    lacking = needs - features
    if not lacking:
        return None
    return (
        f"module `{module}` was compiled for CPU features this machine lacks: {listed(lacking)}; "
        f"compile the package again here, or elsewhere with a `--target` that `bedstone target "
        f"list` says this machine runs"
    )


def parse_cpuinfo(text: str) -> frozenset[str]:
    """The features that every processor of a `/proc/cpuinfo` text has; none where it names none."""
    lines = (line.partition(":") for line in text.splitlines())
    each = [frozenset(value.split()) for key, _, value in lines if key.strip() == "flags"]
    return frozenset.intersection(*each) if each else frozenset()


def read_features(
    cpuinfo: Path = Path("/proc/cpuinfo"), machine: str | None = None
) -> frozenset[str]:
    """This machine's x86-64 features as its kernel reports them; none on any other machine.

    `machine` is what the system calls its processor, by default what it says.
    """
    if not cpuinfo.exists() or sys.maxsize < 2**32:
        return frozenset()
    kind = os.uname().machine if machine is None else machine
    return parse_cpuinfo(cpuinfo.read_text()) if kind == "x86_64" else frozenset()


def listed(names: Collection[str]) -> str:
    """Names in backticks, sorted."""
    return ", ".join(f"`{name}`" for name in sorted(names)) or "none"
