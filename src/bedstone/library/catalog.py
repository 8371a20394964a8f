"""The CPU kernels: every entry with its parameters, grid, scratch and module.

A family is a few rows; its entries are the product of its formats, activation forms and output
forms. The C sources lie under `bedstone/kernels/`; the contract in prose is `docs/kernels.md`.
"""

from collections.abc import Iterator
from functools import cache
from types import MappingProxyType

from bedstone.library.attend import attention_rows, gather_rows
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


def _every_kernel() -> Iterator[Kernel]:
    for fmt in FORMATS.values():
        yield from product_kernels(fmt)
        yield from expert_kernels(fmt)
    for family in _FAMILIES:
        yield from map(kernel, family())


@cache
def cpu_kernels() -> KernelSet:
    """The kernels of every CPU hardware set: the sets differ in code, never in contract."""
    return KernelSet("cpu", MappingProxyType({k.entry: k for k in _every_kernel()}))


__all__ = ["Kernel", "KernelSet", "cpu_kernels"]
