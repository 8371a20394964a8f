"""The coded form of an activation: what the fastest products of a device read instead of floats."""

from dataclasses import dataclass

from bedstone.spec.dtype import DTYPE_BYTES, FORMATS, DType, FormatName

GEMV_ROWS = 8
"""The most rows a GEMV launch multiplies: one accumulator a row is held in registers."""


@dataclass(frozen=True, slots=True)
class Coding:
    """A code of `dtype` for each value, rows of whole blocks of `block` codes.

    Where it is `scaled` each block has a scale (f32) and the sum of its codes (i32). Products of
    more than `above` rows by a matrix of one of `formats` can read it. Those by one of `rounds`
    read floats, which they may round to the matrix's type.
    """

    dtype: DType
    block: int
    scaled: bool
    formats: tuple[FormatName, ...]
    above: int = 0
    rounds: tuple[FormatName, ...] = ()

    @property
    def code_bytes(self) -> int:
        """The bytes of a code."""
        return DTYPE_BYTES[self.dtype]

    def whole(self, *sizes: int) -> bool:
        """Whether offsets and widths, in values, are those of whole blocks."""
        return all(size % self.block == 0 for size in sizes)


INT8 = Coding(
    "i8",
    32,
    True,  # noqa: FBT003 - a row
    tuple(name for name, fmt in FORMATS.items() if fmt.quantized),
    rounds=("bf16",),
)
"""For integer dot products: a block's 32 products are summed exactly."""

BF16 = Coding("bf16", 8, False, tuple(name for name in FORMATS if name != "f32"), above=GEMV_ROWS)  # noqa: FBT003 - a row
"""For matrix units, which only pay with rows enough to fill them; a block is 16 bytes."""
