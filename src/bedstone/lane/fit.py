"""Reading parts in place: a launch is made to follow the tensors it reads, where its kernel can."""

from collections.abc import Mapping
from dataclasses import replace

from bedstone.lane.launch import OneLaunch, Read
from bedstone.lane.layout import View
from bedstone.lane.shim import Shim
from bedstone.lane.touch import Leaf, reads_of, rewrite
from bedstone.library.coding import Coding


def fitted(launch: OneLaunch, views: Mapping[str, View], shim: Shim, coding: Coding) -> OneLaunch:
    """`launch` with a window for each part it reads.

    A quantized part is read in its tensor's own quantized form where the lane has no such launch.
    """
    made = rewrite(launch, lambda leaf: _windowed(leaf, views, None))
    for read in reads_of(launch):
        if read.form == "quant" and _windowed(read, views, coding) != read:
            inside = rewrite(made, lambda leaf: _windowed(leaf, views, coding))
            return made if shim.lacks(inside) is not None else inside
    return made


def _windowed(leaf: Leaf, views: Mapping[str, View], coding: Coding | None) -> Leaf:
    """A read of values, or where a coding is given of codes, as it lies in its tensor's memory."""
    form = "f32" if coding is None else "quant"
    if not isinstance(leaf, Read) or leaf.form != form or leaf.tensor not in views:
        return leaf
    layout = views[leaf.tensor].layout
    if coding is not None and not layout.whole_blocks(coding):
        return leaf
    return replace(leaf, window=layout.window)
