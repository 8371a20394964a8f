"""Rows of every checkpoint format to float32, straight from the formats' definitions.

A block format stores `block` values with one or two scales; the layouts are those of GGML. This is
for readers of few rows and for tests: kernels read the blocks themselves.
"""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import WeightError
from bedstone.spec.dtype import FORMATS, FormatName

Bytes = NDArray[np.uint8]
Values = NDArray[np.float32]


def dequantize(raw: Bytes, format: FormatName, shape: tuple[int, ...]) -> Values:  # noqa: A002
    """The values of a tensor of `shape` whose bytes are `raw` [nbytes].

    Raises `WeightError` where `raw` is not what `format` and `shape` take.
    """
    layout = FORMATS[format]
    count = prod(shape)
    if count % layout.block or raw.size != count // layout.block * layout.block_bytes:
        raise WeightError(f"{raw.size} bytes do not hold a `{format}` tensor of shape {shape}")
    blocks = np.ascontiguousarray(raw).reshape(-1, layout.block_bytes)
    return READERS[format](blocks).reshape(shape)


def _half(blocks: Bytes, start: int) -> Values:
    """The float16 at byte `start` of each block [blocks, 1]."""
    return blocks[:, start : start + 2].copy().view(np.float16).astype(np.float32)


def _nibbles(packed: Bytes) -> Bytes:
    """Low halves of all bytes, then high halves: [.., n] to [.., 2n]."""
    return np.concatenate((packed & 0x0F, packed >> 4), axis=-1)


def _f32(blocks: Bytes) -> Values:
    return blocks.view("<f4").astype(np.float32, copy=True)


def _f16(blocks: Bytes) -> Values:
    return blocks.view("<f2").astype(np.float32)


def _bf16(blocks: Bytes) -> Values:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q8_0(blocks: Bytes) -> Values:
    return _half(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _q4_0(blocks: Bytes) -> Values:
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]).astype(np.float32) - 8)


def _q4_1(blocks: Bytes) -> Values:
    return _half(blocks, 0) * _nibbles(blocks[:, 4:]).astype(np.float32) + _half(blocks, 2)


def _q4_k(blocks: Bytes) -> Values:
    """Eight groups of 32 values, each with a 6-bit scale and a 6-bit minimum.

    Of the 12 bytes that pack them, the first eight hold the low six bits of groups 0-3 (scales,
    then minima) and, in their top two bits, the top of groups 4-7, whose low nibbles are the rest.
    """
    packed = blocks[:, 4:16].reshape(-1, 3, 4)
    low, mid, rest = packed[:, 0], packed[:, 1], packed[:, 2]
    scales = np.concatenate((low & 0x3F, (rest & 0x0F) | (low >> 6) << 4), axis=1)
    minima = np.concatenate((mid & 0x3F, (rest >> 4) | (mid >> 6) << 4), axis=1)
    codes = _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32).astype(np.float32)
    scale = (_half(blocks, 0) * scales.astype(np.float32))[:, :, None]
    minimum = (_half(blocks, 2) * minima.astype(np.float32))[:, :, None]
    return (scale * codes - minimum).reshape(-1, 256)


def _q6_k(blocks: Bytes) -> Values:
    """Two halves of 128 values: low nibbles [64 bytes], top pairs of bits [32 bytes]; 16 scales."""
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    pairs = blocks[:, 128:192].reshape(-1, 2, 1, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    codes = (low | ((pairs >> shifts) & 3) << 4).astype(np.float32) - 32
    scale = _half(blocks, 208) * blocks[:, 192:208].view(np.int8).astype(np.float32)
    return (scale[:, :, None] * codes.reshape(-1, 16, 16)).reshape(-1, 256)


READERS: Mapping[FormatName, Callable[[Bytes], Values]] = {
    "f32": _f32,
    "f16": _f16,
    "bf16": _bf16,
    "q8_0": _q8_0,
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q4_k": _q4_k,
    "q6_k": _q6_k,
}
