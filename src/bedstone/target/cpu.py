"""Which CPU kernel sets this machine can run: never one whose instructions it lacks."""

from collections.abc import Mapping

from bedstone.errors import TargetError
from bedstone.target.features import listed
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
        raise TargetError(f"target `{wanted}` {refusal}; this machine runs {listed(able)}")
    return named


def refuses(hardware: HardwareSet, features: frozenset[str]) -> str | None:
    """Why a CPU with these features does not run a set; None where it does."""
    if hardware.vendor == "any":
        return "holds models and no kernels"
    if hardware.vendor != "cpu":
        return f"is for a GPU (`{hardware.arch}`), not for a CPU"
    lacking = hardware.features - features
    return f"needs CPU features this machine lacks: {listed(lacking)}" if lacking else None
