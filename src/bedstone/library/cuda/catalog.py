"""The CUDA kernels: the entries of the CPU catalog with activations coded as bfloat16.

An entry that no geometry matches is not in the set; nor is a variant, whose name is an entry's with
a suffix. Every launch overlaps the one before it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePath
from types import MappingProxyType

from bedstone.library.catalog import every_kernel, for_tables, narrowed, touches
from bedstone.library.coding import BF16
from bedstone.library.cuda import attend, coded, dense, mixture, products, recurrent, tail
from bedstone.library.kernel import (
    MAPS,
    CacheType,
    Extent,
    Geometry,
    Join,
    Joining,
    Kernel,
    KernelSet,
    Param,
    Suits,
    Taken,
    Variant,
)
from bedstone.spec.manifest import BytesParam

_FAMILIES = (coded, products, dense, attend, mixture, recurrent)
_GEOMETRIES = tuple(row for family in _FAMILIES for row in family.GEOMETRIES)
_JOININGS: tuple[Joining, ...] = (*tail.JOININGS, *attend.JOININGS)
_VARIANTS: tuple[Variant, ...] = tuple(row for family in _FAMILIES for row in family.VARIANTS)


@cache
def cuda_kernels(cache: CacheType, *, clusters: bool = True, warpgroups: bool = True) -> KernelSet:
    """The kernels of every CUDA hardware set, for paged tables of that type.

    A device without `clusters` runs what is made for one block by block: sources see to that. What
    reads matrices by boxes multiplies them by `warpgroups`: others do without. Where there are
    those, there is room too.
    """
    found: dict[str, Kernel] = {}
    touching: set[str] = set()
    variants: dict[str, tuple[tuple[str, Suits], ...]] = {}
    for kernel in every_kernel(BF16):
        others = {kernel.entry + v.suffix: v.suits for v in _variants(kernel.entry)}
        for name in (kernel.entry, *others):
            geometry = _geometry(name)
            if geometry is not None and geometry.rounded and clusters and cache != "f32":
                geometry = geometry.rounded
            if geometry is not None and (warpgroups or not geometry.boxes):
                fit = _fit(geometry, clusters=clusters, roomy=warpgroups)
                found[name] = made = _launched(replace(kernel, entry=name), fit)
                touching |= {made.module} if geometry.rounds or touches(made) else set()
        variants[kernel.entry] = tuple(item for item in others.items() if item[0] in found)
    if cache != "f32":
        found = for_tables(found, touching, cache)
    rows = {entry: rows for entry, rows in variants.items() if rows}
    joins = _joins(cache, clusters=clusters, roomy=warpgroups)
    return KernelSet(
        f"cuda {cache}", MappingProxyType(found), cache, BF16, MappingProxyType(rows), joins
    )


def _fit(geometry: Geometry, *, clusters: bool, roomy: bool) -> Geometry:
    """A geometry as a device takes it."""
    made = geometry.roomy if roomy and geometry.roomy is not None else geometry
    return made if clusters else replace(made, cluster=None)


def _joins(cache: CacheType, *, clusters: bool, roomy: bool) -> Mapping[str, Join]:
    """The kernels for several launches: all are for tables of bfloat16."""
    if cache == "f32":
        return MappingProxyType({})
    plain = {kernel.entry: kernel for kernel in every_kernel(BF16)}
    made: dict[str, Join] = {}
    for each in sorted(_JOININGS, key=lambda row: -len(row.taken)):
        if each.roomy and not roomy:
            continue
        taken = tuple(_named(one, plain[one.entry]) for one in each.taken)
        geometry = _fit(each.geometry, clusters=clusters, roomy=roomy)
        kernel = _launched(_whole(each, taken, plain), geometry)
        made[each.entry] = Join(
            each.kind, taken, narrowed(kernel, cache), each.handed, each.settled, each.suits
        )
    return MappingProxyType(made)


def _named(taken: Taken, kernel: Kernel) -> Taken:
    """A launch with a name for every parameter of its kernel."""
    names = {param.name: taken.names.get(param.name, param.name) for param in kernel.params}
    return replace(taken, names=MappingProxyType(names))


def _whole(joining: Joining, taken: Iterable[Taken], plain: Mapping[str, Kernel]) -> Kernel:
    """A kernel with the parameters of several, each as the first launch that has it does."""
    params: dict[str, Param] = {}
    for one in taken:
        for param in plain[one.entry].params:
            params.setdefault(one.names[param.name], param)
    left = {
        name: Param(name, param.type)
        for name, param in params.items()
        if name not in joining.handed and name not in joining.settled
    }
    order = joining.order or tuple(left)
    last = plain[joining.taken[-1].entry]
    return replace(last, entry=joining.entry, params=tuple(left[name] for name in order))


def _variants(entry: str) -> Iterator[Variant]:
    return (variant for variant in _VARIANTS if fnmatchcase(entry, variant.pattern))


def _geometry(name: str) -> Geometry | None:
    return next((made for pattern, made in _GEOMETRIES if fnmatchcase(name, pattern)), None)


def _launched(kernel: Kernel, geometry: Geometry) -> Kernel:
    """A kernel of the catalog as a GPU launches it."""
    stem = PurePath(geometry.source or kernel.source).stem
    x, y, z = (*geometry.grid, Extent(), Extent(), Extent())[:3]
    return replace(
        kernel,
        entry=geometry.function or kernel.entry,
        module=_module(stem, kernel, geometry),
        source=f"{stem}.cu",
        defines=_defines(kernel, geometry),
        grid=(x, y, z),
        shared=geometry.shared,
        block=geometry.block,
        cluster=geometry.cluster,
        pdl=True,
        params=(*kernel.params, *_maps(geometry)),
        boxes=geometry.boxes,
    )


def _module(stem: str, kernel: Kernel, geometry: Geometry) -> str:
    form = kernel.module.removeprefix(PurePath(kernel.source).stem.replace("_", "-"))
    alone = f"-{geometry.only.replace('_', '-')}" if geometry.only else ""
    told = "".join(f"-{name[0].lower()}{value}" for name, value in geometry.defines)
    return stem.replace("_", "-") + form + alone + told


def _defines(kernel: Kernel, geometry: Geometry) -> Mapping[str, str]:
    only = {"BS_ONLY": geometry.only} if geometry.only else {}
    return MappingProxyType({**kernel.defines, **only, **dict(geometry.defines)})


def _maps(geometry: Geometry) -> tuple[Param, ...]:
    return (Param(MAPS, BytesParam(128 * len(geometry.boxes))),) if geometry.boxes else ()
