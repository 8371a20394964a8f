"""Kernels taken from another hardware set than the target's own, launch by launch.

A set inherits from others, and all that a machine runs have every entry: for a launch there are as
many kernels as sets. Who picks is not known here, and nothing is picked unless somebody is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bedstone.build.kernels import Compiled, compile_modules
from bedstone.build.launches import Numbers
from bedstone.library.kernel import Kernel
from bedstone.target.audit import Built
from bedstone.target.hardware import read_sets
from bedstone.target.sources import Sources, read_sources


@dataclass(frozen=True, slots=True)
class Verdict:
    """The other set that a kernel is to come from, None for the target's own, and why."""

    hardware: str | None
    reason: str


class Picks(Protocol):
    """Says which set a launch's kernel comes from."""

    @property
    def identity(self) -> str:
        """Names by content all that decides what is picked."""
        ...

    def pick(self, kernel: Kernel, numbers: Numbers) -> Verdict:
        """The verdict on a kernel at these sizes."""
        ...


def taken_from(kernel: Kernel, hardware: str) -> Kernel:
    """The same kernel in a module of its own, which is compiled for another set."""
    return replace(kernel, module=f"{kernel.module}.{hardware}")


def compile_picked(
    sources: Sources, modules: Mapping[str, Kernel], picked: Mapping[str, str], cache: Path
) -> Compiled:
    """`compile_modules`, but each module that `picked` names from the set it is picked from.

    Raises what `compile_modules` does.
    """
    own = {label: kernel for label, kernel in modules.items() if label not in picked}
    every = [compile_modules(sources, own, cache)]
    for hardware in sorted(set(picked.values())):
        theirs = {label: modules[label] for label, name in picked.items() if name == hardware}
        every.append(compile_modules(read_sources(read_sets()[hardware]), theirs, cache))
    return Compiled(
        {label: data for each in every for label, data in each.objects.items()},
        Built(
            {label: blob for each in every for label, blob in each.built.blobs.items()},
            {label: blob for each in every for label, blob in each.built.hidden.items()},
        ),
    )
