"""Sets of GPUs: their modules as the library states them, and the sample that tests compile.

A whole set takes a compiler many minutes, so tests compile a sample of it. A digest over sources
chooses: it is the same everywhere, and moves when a source does.
"""

import hashlib
from collections.abc import Iterator

from bedstone.build.kernels import catalogs, modules_of
from bedstone.library.kernel import Kernel
from bedstone.target.blob import Blob
from bedstone.target.hardware import read_sets
from bedstone.target.sources import Sources

SETS = read_sets()
GPU_SETS = [name for name, each in SETS.items() if each.vendor == "nvidia"]
WHOLE = "hopper"
"""The set of which every source is compiled; it inherits most of what the others have."""

FAMILIES = 2
"""Modules of each source that are compiled for it, each of another family of entries."""

SOURCES = 8
"""Sources of which any other set's sample holds a module."""


def kernels_of(name: str) -> list[Kernel]:
    return [k for held in catalogs(SETS[name]) for k in held.every]


def as_if_built(name: str) -> dict[str, Blob]:
    """The modules of a set as they are when every source holds what the library says."""
    entries: dict[str, dict[str, str | None]] = {}
    for kernel in kernels_of(name):
        entries.setdefault(kernel.module, {})[kernel.entry] = None
    arch = SETS[name].arch
    return {label: Blob(label, "cubin", arch, "0" * 64, e) for label, e in entries.items()}


def sample(sources: Sources) -> dict[str, Kernel]:
    """The modules of a set that tests compile."""
    every = sources.hardware.name == WHOLE
    families, most = (FAMILIES, None) if every else (1, SOURCES)
    return dict(_chosen(sources, families, most))


def _chosen(sources: Sources, families: int, most: int | None) -> Iterator[tuple[str, Kernel]]:
    taken: dict[str, set[str]] = {}
    for label, kernel in _in_order(sources):
        family, mine = kernel.defines.get("BS_ONLY", ""), taken.get(kernel.source, set())
        if family not in mine and len(mine) < families and (mine or len(taken) != most):
            taken[kernel.source] = mine | {family}
            yield label, kernel


def _in_order(sources: Sources) -> list[tuple[str, Kernel]]:
    """All modules, those of one source together, by digests."""
    modules = modules_of(kernels_of(sources.hardware.name))
    names = {kernel.source for kernel in modules.values()}
    texts = {name: sources.source(name).read_bytes() for name in names}

    def place(item: tuple[str, Kernel]) -> tuple[bytes, bytes]:
        label, kernel = item
        text = sources.hardware.arch.encode() + texts[kernel.source]
        return _digest(kernel.source.encode() + text), _digest(label.encode() + text)

    return sorted(modules.items(), key=place)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
