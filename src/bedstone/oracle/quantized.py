"""The quantized form of an activation: what a product with a quantized matrix reads."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.lane.schedule import QBLOCK

Floats = NDArray[Any]


def quantize(x: Floats) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Codes [rows, width] and scales [rows, width / QBLOCK] of `x` [rows, width].

    All in float32: a block's scale is its largest magnitude over 127, a code the value over the
    scale rounded to the nearest integer, halves away from zero; a block of zeros has scale and
    codes 0.
    """
    rows, width = x.shape
    if width % QBLOCK:
        raise CallerError(f"rows of {width} values are no whole blocks of {QBLOCK} to quantize")
    blocks: NDArray[np.float32] = x.astype(np.float32).reshape(rows, width // QBLOCK, QBLOCK)
    scales = np.abs(blocks).max(axis=-1) / np.float32(127)
    ratio = np.divide(
        blocks, scales[..., None], out=np.zeros_like(blocks), where=scales[..., None] != 0
    )
    whole = np.floor(np.abs(ratio))
    magnitude = np.where(np.abs(ratio) - whole >= 0.5, whole + 1, whole)
    with np.errstate(invalid="ignore"):  # unwritten memory: the scale carries its NaN on
        codes = np.copysign(magnitude, ratio).astype(np.int8)
    return codes.reshape(rows, width), scales


def dequantize(
    codes: NDArray[np.int8], scales: NDArray[np.float32], dtype: np.dtype[Any]
) -> Floats:
    """The values codes stand for, in `dtype`."""
    rows, width = codes.shape
    blocks: Floats = codes.reshape(rows, width // QBLOCK, QBLOCK).astype(dtype)
    values: Floats = (blocks * scales[..., None].astype(dtype)).reshape(rows, width)
    return values
