"""Where the bytes of a constant lie in a checkpoint, in the words of a manifest's bind."""

import math
from collections.abc import Mapping

from bedstone.checkpoint.constants import Constant, Window
from bedstone.checkpoint.tensors import TensorInfo
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import Segment


def segments(constant: Constant, tensors: Mapping[str, TensorInfo]) -> tuple[Segment, ...]:
    """The pieces that a constant is, end to end, of tensors by their canonical names."""
    return tuple(_segment(window, tensors[window.tensor]) for window in constant.windows)


def _segment(window: Window, info: TensorInfo) -> Segment:
    """Rows of a tensor seen as a matrix as wide as its last axis.

    To a bind it is a matrix by its first axis: what is no whole rows of that is columns of one.
    """
    *outer, width = info.shape
    each = math.prod(outer[1:])
    first, last = window.start, window.start + window.rows
    if window.rows == math.prod(outer):
        return Segment(info.name)
    if first % each == 0 and last % each == 0:
        return Segment(info.name, rows=(first // each, last // each))
    form, row = FORMATS[info.format], first // each
    step = form.row_bytes(width) if form.quantized else width
    at = first % each
    cols = (at * step, (at + window.rows) * step)
    return Segment(info.name, rows=(row, row + 1), cols=cols)
