"""Every entry with its parameters, and the grid, scratch and module it has on a CPU.

A family is a few rows; its entries are the product of its formats, activation forms and output
forms. The C sources lie under `bedstone/kernels/`; the contract in prose is `docs/kernels.md`.
"""

from collections.abc import Iterator
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
from bedstone.library.kernel import Kernel, KernelSet
from bedstone.library.mixture import expert_kernels, router_rows
from bedstone.library.params import kernel
from bedstone.library.product import product_kernels
from bedstone.library.recurrent import recurrent_rows
from bedstone.spec.dtype import FORMATS

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


@cache
def cpu_kernels() -> KernelSet:
    """The kernels of every CPU hardware set: the sets differ in code, never in contract."""
    found = {kernel.entry: kernel for kernel in every_kernel(INT8)}
    cut = {entry: made for entry, kernel in found.items() if (made := in_pieces(kernel))}
    variants = {entry: ((made.entry, suits_pieces),) for entry, made in cut.items()}
    every = found | {made.entry: made for made in cut.values()}
    return KernelSet("cpu", MappingProxyType(every), variants=MappingProxyType(variants))


__all__ = ["Kernel", "KernelSet", "cpu_kernels", "every_kernel"]
