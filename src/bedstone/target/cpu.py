"""Which CPU kernel sets this machine can run: never one whose instructions it lacks."""

import platform
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from bedstone.errors import TargetError
from bedstone.target.hardware import HardwareSet, find_set
from bedstone.target.pin import AUTO


def runnable(sets: Mapping[str, HardwareSet], features: frozenset[str]) -> tuple[str, ...]:
    """The CPU sets whose every needed feature is in `features`, the most demanding first."""
    fitting = (s for s in sets.values() if s.vendor == "cpu" and s.features <= features)
    return tuple(s.name for s in sorted(fitting, key=lambda s: (-len(s.features), s.name)))


def choose(wanted: str, sets: dict[str, HardwareSet], features: frozenset[str]) -> HardwareSet:
    """The set to compile for: the best this CPU runs for `auto`, else the one named.

    An unknown set is a `CallerError`, a CPU set that this machine cannot run a `TargetError`. One
    of a GPU needs none: what runs its kernels is judged where they are loaded.
    """
    able = runnable(sets, features)
    if wanted == AUTO and able:
        return sets[able[0]]
    if wanted == AUTO:
        raise TargetError("no hardware set runs on this machine's CPU")
    named = find_set(wanted, sets)
    if named.vendor == "nvidia":
        return named
    refusal = refuses(named, features)
    if refusal is not None:
        raise TargetError(f"target `{wanted}` {refusal}; this machine runs {_listed(able)}")
    return named


def refuses(hardware: HardwareSet, features: frozenset[str]) -> str | None:
    """Why a CPU with these features does not run a set; None where it does."""
    if hardware.vendor == "any":
        return "holds models and no kernels"
    if hardware.vendor != "cpu":
        return f"is for a GPU (`{hardware.arch}`), not for a CPU"
    lacking = hardware.features - features
    return f"needs CPU features this machine lacks: {_listed(lacking)}" if lacking else None


def lacks(module: str, needs: frozenset[str], features: frozenset[str]) -> str | None:
    """Why a CPU with these features must not call a module that needs others; else None."""
    lacking = needs - features
    if not lacking:
        return None
    return (
        f"module `{module}` was compiled for CPU features this machine lacks: {_listed(lacking)}; "
        f"compile the package again here, or elsewhere with a `--target` that `bedstone target "
        f"list` says this machine runs"
    )


def require_features(module: str, needs: frozenset[str], features: frozenset[str]) -> None:
    """Refuse a module that was compiled for CPU features which are not there."""
    refusal = lacks(module, needs, features)
    if refusal is not None:
        raise TargetError(refusal)


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


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "none"
