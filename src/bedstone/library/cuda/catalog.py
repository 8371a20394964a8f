"""The CUDA kernels: the entries of the CPU catalog with activations coded as bfloat16.

An entry that no geometry matches is not in the set. Every launch overlaps the one before it.
"""

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePath
from types import MappingProxyType

from bedstone.library.catalog import every_kernel
from bedstone.library.coding import BF16
from bedstone.library.cuda import attend, dense, mixture, products, recurrent
from bedstone.library.kernel import CacheType, Extent, Geometry, Kernel, KernelSet

_GEOMETRIES = (
    *products.GEOMETRIES,
    *dense.GEOMETRIES,
    *attend.GEOMETRIES,
    *mixture.GEOMETRIES,
    *recurrent.GEOMETRIES,
)


@cache
def cuda_kernels(cache: CacheType) -> KernelSet:
    """The kernels of every CUDA hardware set, for paged tables of that type."""
    found = {
        kernel.entry: _launched(kernel, geometry, cache)
        for kernel in every_kernel(BF16)
        if (geometry := _geometry(kernel.entry)) is not None
    }
    return KernelSet(f"cuda {cache}", MappingProxyType(found), cache)


def _geometry(entry: str) -> Geometry | None:
    return next((made for pattern, made in _GEOMETRIES if fnmatchcase(entry, pattern)), None)


def _launched(kernel: Kernel, geometry: Geometry, cache: CacheType) -> Kernel:
    """A kernel of the catalog as a GPU launches it."""
    stem = PurePath(geometry.source or kernel.source).stem
    form = kernel.module.removeprefix(PurePath(kernel.source).stem.replace("_", "-"))
    x, y, z = (*geometry.grid, Extent(), Extent(), Extent())[:3]
    return replace(
        kernel,
        module=stem.replace("_", "-") + form,
        source=f"{stem}.cu",
        defines=MappingProxyType({**kernel.defines, "BS_CACHE": _CACHES[cache]}),
        grid=(x, y, z),
        shared=geometry.shared,
        block=geometry.block,
        cluster=geometry.cluster,
        pdl=True,
    )


_CACHES: dict[CacheType, str] = {"f32": "float", "bf16": "bf16"}
