"""The coded form of an activation: what the fastest products of a device read instead of floats."""

from dataclasses import dataclass

from bedstone.spec.dtype import FORMATS, DType, FormatName

GEMV_ROWS = 8
"""The most rows a GEMV launch multiplies: one accumulator a row is held in registers."""


@dataclass(frozen=True, slots=True)
class Coding:
    """A code of `dtype` for each value, with a scale (f32) and a sum (i32) for each `block` codes.

    Codes that stand for themselves have neither: their `block` is 1. Products of more than `above`
    rows by a matrix of one of `formats` can read it.
    """

    dtype: DType
    block: int
    formats: frozenset[FormatName]
    above: int = 0

    @property
    def scaled(self) -> bool:
        """Whether codes mean something only beside their scales."""
        return self.block > 1


INT8 = Coding("i8", 32, frozenset(name for name, fmt in FORMATS.items() if fmt.quantized))
"""For integer dot products: a block's 32 products are summed exactly."""

BF16 = Coding("bf16", 1, frozenset(FORMATS) - {"f32"}, above=GEMV_ROWS)
"""For matrix units, which only pay with rows enough to fill them."""
