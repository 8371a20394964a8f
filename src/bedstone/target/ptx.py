"""What PTX text says of itself."""

import re
from dataclasses import dataclass

from bedstone.errors import KernelError

Isa = tuple[int, int]
"""A version of the PTX instruction set: 8.10 comes after 8.4."""

_VERSION = re.compile(rb"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_TARGET = re.compile(rb"^\s*\.target\s+(\w+)", re.MULTILINE)
_ENTRY = re.compile(rb"^\s*(?:\.(?:visible|weak)\s+)*\.entry\s+([\w$]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ptx:
    """A PTX text's own words: the instruction set it needs, its architecture, its entries."""

    isa: Isa
    target: str
    entries: tuple[str, ...]


def parse_ptx(text: bytes, module: str) -> Ptx:
    """What the text of `module` says; one without a version or a target is a `KernelError`."""
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version is None or target is None:
        raise KernelError(f"module `{module}` is no PTX: expected a `.version` and a `.target`")
    entries = tuple(sorted(name.decode() for name in _ENTRY.findall(text)))
    return Ptx((int(version[1]), int(version[2])), target[1].decode(), entries)
