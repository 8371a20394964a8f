"""Bedstone turns a language model into a program that can be checked, then runs it.

The public names are loaded on first use: `import bedstone` alone reads no array, no device and no
model library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedstone.build.api import compile, plan  # noqa: A004
    from bedstone.build.request import Package
    from bedstone.errors import (
        BedstoneError,
        CallerError,
        CapacityError,
        DefinitionError,
        DeviceError,
        KernelError,
        ManifestError,
        TargetError,
        WeightError,
    )
    from bedstone.lane.schedule import Schedule
    from bedstone.runtime.load import load
    from bedstone.runtime.session import Session
    from bedstone.spec.fault import Fault
    from bedstone.spec.sampling import Sampling
    from bedstone.verify.document import check

_MODULES = {
    "BedstoneError": "bedstone.errors",
    "CallerError": "bedstone.errors",
    "CapacityError": "bedstone.errors",
    "DefinitionError": "bedstone.errors",
    "DeviceError": "bedstone.errors",
    "Fault": "bedstone.spec.fault",
    "KernelError": "bedstone.errors",
    "ManifestError": "bedstone.errors",
    "Package": "bedstone.build.request",
    "Sampling": "bedstone.spec.sampling",
    "Schedule": "bedstone.lane.schedule",
    "Session": "bedstone.runtime.session",
    "TargetError": "bedstone.errors",
    "WeightError": "bedstone.errors",
    "check": "bedstone.verify.document",
    "compile": "bedstone.build.api",
    "load": "bedstone.runtime.load",
    "plan": "bedstone.build.api",
}
"""Each public name and the module that defines it."""

__all__ = [
    "BedstoneError",
    "CallerError",
    "CapacityError",
    "DefinitionError",
    "DeviceError",
    "Fault",
    "KernelError",
    "ManifestError",
    "Package",
    "Sampling",
    "Schedule",
    "Session",
    "TargetError",
    "WeightError",
    "check",
    "compile",
    "load",
    "plan",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module `bedstone` has no attribute `{name}`")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
