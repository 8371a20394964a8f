"""A CUDA lane whose set has every entry there is, whether or not a source has it yet."""

from functools import cache

from bedstone.build.lane import Lane
from bedstone.lane.cuda import CudaShim
from bedstone.lane.facts import Knobs
from bedstone.library.catalog import every_kernel
from bedstone.library.coding import BF16
from bedstone.library.kernel import KernelSet

CACHES = {"precise": "f32", "quantized": "bf16"}


@cache
def every_entry(numerics: str) -> Lane:
    kernels = {kernel.entry: kernel for kernel in every_kernel(BF16)}
    held = KernelSet("every entry", kernels, CACHES[numerics], BF16)
    return Lane(numerics, held, CudaShim(held), Knobs(max_chunk=2048))
