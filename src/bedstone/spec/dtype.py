"""Element types of manifest buffers and the block formats of checkpoint rows."""

from typing import Literal

from bedstone.spec.frozen import Frozen

DType = Literal["bf16", "f16", "f32", "fp8e4m3", "fp8e8m0", "i8", "i32", "u32", "i64", "u64", "u8"]

DTYPE_BYTES: dict[DType, int] = {
    "bf16": 2,
    "f16": 2,
    "f32": 4,
    "fp8e4m3": 1,
    "fp8e8m0": 1,
    "i8": 1,
    "i32": 4,
    "u32": 4,
    "i64": 8,
    "u64": 8,
    "u8": 1,
}

FormatName = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q4_k", "q6_k"]


class Format(Frozen):
    """How a matrix row is stored: blocks of `block` values in `block_bytes` bytes.

    `dtype` is the element type the manifest declares for a buffer that holds such rows: dense
    formats keep their own type, quantized ones are `u8` with `block_bytes` elements a block.
    """

    name: FormatName
    block: int
    block_bytes: int
    dtype: DType

    @property
    def quantized(self) -> bool:
        """Whether a row is made of blocks that share a scale."""
        return self.block > 1

    def row_bytes(self, width: int) -> int:
        """Bytes of a row of `width` values; `width` is a multiple of `block`."""
        return width // self.block * self.block_bytes


FORMATS: dict[FormatName, Format] = {
    f.name: f
    for f in (
        Format("f32", 1, 4, "f32"),
        Format("f16", 1, 2, "f16"),
        Format("bf16", 1, 2, "bf16"),
        Format("q8_0", 32, 34, "u8"),
        Format("q4_0", 32, 18, "u8"),
        Format("q4_1", 32, 20, "u8"),
        Format("q4_k", 256, 144, "u8"),
        Format("q6_k", 256, 210, "u8"),
    )
}
