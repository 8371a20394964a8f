"""Which device runs code compiled for an NVIDIA architecture, judged on the verbatim string.

`sm_90` is plain, `sm_90a` for exactly one chip, `sm_100f` for a family. PTX text is compiled by the
driver when it is loaded, so plain PTX runs on all later devices; a cubin is machine code and never
leaves its major version.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Form = Literal["shared_object", "ptx", "cubin"]
"""How a module is held: a shared object of the host, PTX text, or machine code of a GPU."""

Capability = tuple[int, int]
"""A device's compute capability: major, minor."""

_ARCH = re.compile(r"sm_([1-9]\d*)(\d)([af]?)")

_APART: frozenset[Capability] = frozenset({(10, 1)})
"""Devices that share no `f` architecture with the rest of their major version."""


@dataclass(frozen=True, slots=True)
class Arch:
    """An architecture of NVIDIA's: `suffix` is empty, `a` or `f`."""

    major: int
    minor: int
    suffix: str

    @property
    def capability(self) -> Capability:
        """The device it is named after."""
        return self.major, self.minor


def parse_arch(text: str) -> Arch | None:
    """The architecture of a string such as `sm_90a`; None for anything else."""
    found = _ARCH.fullmatch(text)
    return None if found is None else Arch(int(found[1]), int(found[2]), found[3])


def runs(arch: Arch, form: Form, device: Capability) -> bool:
    """Whether a device runs code of that architecture and form."""
    match arch.suffix:
        case "a":
            return device == arch.capability
        case "f":
            return device >= arch.capability and _family(device) == _family(arch.capability)
        case _ if form == "ptx":
            return device >= arch.capability
        case _:
            return device[0] == arch.major and device >= arch.capability


def unfit(text: str, form: Form, device: Capability) -> str | None:
    """Why a device does not run code compiled for `text`; None where it does.

    A string that is no NVIDIA architecture is never taken for one that fits.
    """
    arch = parse_arch(text)
    if arch is None:
        return f"`{text}` is no architecture of an NVIDIA device"
    if runs(arch, form, device):
        return None
    return f"{form} for `{text}` {_scope(arch, form)}; the device is {spelled_capability(device)}"


WARPGROUPS = "sm_90a"
"""The one architecture whose matrix units four warps drive together."""

CLUSTERS: Capability = (9, 0)
"""The first devices that run clusters of blocks, and launches that overlap the one before."""


def fitting(device: Capability, archs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The names whose architecture a device runs as machine code, of (name, arch) pairs."""
    return tuple(name for name, arch in archs if unfit(arch, "cubin", device) is None)


def spelled_capability(device: Capability) -> str:
    """A compute capability as NVIDIA writes it."""
    return f"{device[0]}.{device[1]}"


def _family(device: Capability) -> tuple[int, ...]:
    """What devices of one family have in common."""
    return device if device in _APART else device[:1]


def _scope(arch: Arch, form: Form) -> str:
    named = spelled_capability(arch.capability)
    match arch.suffix:
        case "a":
            return f"runs only on {named}"
        case "f":
            return f"runs only on {named} and later devices of its family"
        case _ if form == "ptx":
            return f"needs {named} or later"
        case _:
            return f"needs {named} or a later {arch.major}.x"
