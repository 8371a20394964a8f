"""Which CPU kernel set this machine can run: never one whose instructions it lacks."""

import platform
import sys
from pathlib import Path

_V3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "sse4_2", "xsave"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni"}

HARDWARE_SETS: tuple[tuple[str, frozenset[str]], ...] = (
    ("cpu-x86-64-v4", _V4),
    ("cpu-x86-64-v3", _V3),
    ("cpu-generic", frozenset()),
)
"""Each set and the CPU features it needs (Linux's names), the fastest first."""


def choose(features: frozenset[str]) -> str:
    """The fastest hardware set whose every needed feature is in `features`."""
    return next(name for name, needed in HARDWARE_SETS if needed <= features)


def parse_cpuinfo(text: str) -> frozenset[str]:
    """The features that every processor of a `/proc/cpuinfo` text has; none where it names none."""
    lines = (line.partition(":") for line in text.splitlines())
    each = [frozenset(value.split()) for key, _, value in lines if key.strip() == "flags"]
    return frozenset.intersection(*each) if each else frozenset()


def read_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """This machine's x86-64 features as its kernel reports them; none on any other machine."""
    if platform.machine() != "x86_64" or sys.maxsize < 2**32 or not cpuinfo.exists():
        return frozenset()
    return parse_cpuinfo(cpuinfo.read_text())
