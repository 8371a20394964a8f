"""Geometry of the CUDA kernels: what carries a state of each sequence."""

from bedstone.library.kernel import Extent, Geometry, Shared, Variant

_CHANNELS = 128
"""Channels of a convolution a block owns, at least, and the rows it makes of them."""
_SLAB = 32

_COLUMNS = 32
_STAGE = 16
"""Columns of a head's state a block owns, and the rows it lays into shared memory at a time."""

_FLOAT = 4

_HELD = Shared(
    # twice: keys and queries made up to whole 32s, values, gates
    2 * _FLOAT * _STAGE * (2 * 31 + _COLUMNS + 2),
    (("dk", 2 * _FLOAT * _STAGE * 2),),
)


def _conv(channels: str, parts: int) -> Geometry:
    grid = (Extent(channels, _CHANNELS), Extent("seqs"), Extent("rows", _SLAB, times=parts))
    return Geometry((128, 1, 1), grid)


GEOMETRIES: tuple[tuple[str, Geometry], ...] = (
    ("conv", _conv("channels", 1)),
    *((f"conv_parts{parts}", _conv("channels0", parts)) for parts in (2, 3)),
    ("decay", Geometry((256, 1, 1), (Extent("rows"),))),
    (
        "delta*",
        Geometry((256, 1, 1), (Extent("heads"), Extent("seqs"), Extent("dv", _COLUMNS)), _HELD),
    ),
)
"""Patterns of entry names, the first that matches deciding."""

VARIANTS: tuple[Variant, ...] = ()
"""Kernels to take in place of others where they suit, the first that does."""
