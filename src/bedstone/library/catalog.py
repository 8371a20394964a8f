"""Every entry with its parameters, and the grid, scratch and module it has on a CPU.

A family is a few rows; its entries are the product of its formats, activation forms and output
forms. The C sources lie under `bedstone/kernels/`; the contract in prose is `docs/kernels.md`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from bedstone.library.attend import (
    attention_rows,
    gather_rows,
    in_pieces,
    rounding,
    suits_pieces,
)
from bedstone.library.coding import INT8, Coding
from bedstone.library.dense import elementwise_rows, moved_rows, norm_rows, rope_rows
from bedstone.library.kernel import TABLES, CacheType, Kernel, KernelSet
from bedstone.library.mixture import expert_kernels, router_rows
from bedstone.library.params import kernel
from bedstone.library.product import PANELS, panel_kernels, product_kernels
from bedstone.library.recurrent import recurrent_rows
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import StateParam

_FAMILIES = (
    norm_rows,
    rope_rows,
    attention_rows,
    gather_rows,
    moved_rows,
    elementwise_rows,
    router_rows,
    recurrent_rows,
)


def every_kernel(coding: Coding) -> Iterator[Kernel]:
    """Every entry there is for activations coded so, as the CPU's sets launch it."""
    for fmt in FORMATS.values():
        yield from product_kernels(fmt, coding)
        yield from expert_kernels(fmt, coding)
    for family in _FAMILIES:
        yield from map(kernel, family(coding))
    if coding.rounds:
        yield from map(rounding, map(kernel, attention_rows(coding)))


def cpu_kernels(cache: CacheType = "f32") -> KernelSet:
    """The kernels of every CPU hardware set, for paged tables of that type.

    The sets differ in code, never in contract.
    """
    return _cpu_kernels(cache)


@cache
def _cpu_kernels(cache: CacheType) -> KernelSet:
    found = {kernel.entry: kernel for kernel in every_kernel(INT8)}
    cut = {entry: made for entry, kernel in found.items() if (made := in_pieces(kernel))}
    variants = {entry: ((made.entry, suits_pieces),) for entry, made in cut.items()}
    panels = {k.entry: k for fmt in FORMATS.values() for k in panel_kernels(fmt, INT8)}
    laid = {name.removeprefix(PANELS): name for name, k in panels.items() if k.layer}
    every = found | {made.entry: made for made in cut.values()} | panels
    if cache != "f32":
        every = for_tables(
            every, (kernel.module for kernel in every.values() if touches(kernel)), cache
        )
    return KernelSet(
        f"cpu {cache}",
        MappingProxyType(every),
        cache,
        variants=MappingProxyType(variants),
        laid=MappingProxyType(laid),
    )


def touches(kernel: Kernel) -> bool:
    """Whether a kernel reads or writes a paged table."""
    return any(isinstance(p.type, StateParam) and p.name in TABLES for p in kernel.params)


def for_tables(
    kernels: Mapping[str, Kernel], modules: Iterable[str], cache: CacheType
) -> dict[str, Kernel]:
    """Kernels by entry, those in modules that depend on the type of tables compiled for another."""
    depend = frozenset(modules)
    return {n: narrowed(k, cache) if k.module in depend else k for n, k in kernels.items()}


def narrowed(kernel: Kernel, cache: CacheType) -> Kernel:
    """A kernel compiled for tables of another type."""
    defines = MappingProxyType({**kernel.defines, "BS_CACHE": cache})
    return replace(kernel, module=f"{kernel.module}-{cache}cache", defines=defines)


__all__ = [
    "Kernel",
    "KernelSet",
    "cpu_kernels",
    "every_kernel",
    "for_tables",
    "narrowed",
    "touches",
]
