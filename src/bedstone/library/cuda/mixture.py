"""Geometry of the CUDA kernels: mixtures of experts, and each head by its own matrix."""

from collections.abc import Iterator
from dataclasses import replace

from bedstone.library.coding import BF16
from bedstone.library.kernel import Extent, Geometry, Shared, Variant
from bedstone.spec.dtype import FORMATS, FormatName

_CHOICE_ROWS = 4
"""Rows of a block that scores, chooses or weighs; a warp each."""

_ROUTED_ROWS = 8
"""Rows of a router's cluster."""

_BALLOT = 12
"""Bytes of a choice for each expert."""

_LOGIT = 4


def _threads(count: int) -> tuple[int, int, int]:
    return count, 1, 1


_CHOICE = Geometry(_threads(32 * _CHOICE_ROWS), (Extent("rows", _CHOICE_ROWS),))
_TOPK = Geometry(_CHOICE.block, _CHOICE.grid, Shared(0, (("experts", _BALLOT * _CHOICE_ROWS),)))
_ROUTE = Geometry(
    _threads(256),
    (Extent("rows", _ROUTED_ROWS, times=8),),
    Shared(0, (("experts", (_BALLOT + _LOGIT) * _ROUTED_ROWS),)),
    cluster=(8, 1, 1),
    source="route.cu",
)
_ROUTE_CODED = replace(_ROUTE, source="route_coded.cu")
_EACH_CHOICE = Geometry(_threads(128), (Extent("n", 4), Extent("chosen"), Extent("rows")))


def _sums(outputs: int) -> Geometry:
    return Geometry(_threads(128), (Extent("n", outputs), Extent("rows")))


_HEADS = Geometry(_threads(128), (Extent("heads"), Extent("n", 16), Extent("rows")))
_TRANSPOSED = Geometry(_threads(128), (Extent("heads"), Extent("n", 128), Extent("rows", 8)))

_EXPERTS_IN_TURN = 128
"""Blocks that an output's experts are dealt to."""

_SORTED_PAIRS = 8192
_MADE = 4 * 2 * 64 * 20 * 4
"""Bytes of what four warps make of two matrices for 64 pairs, 16 of a pair's outputs and a gap."""

_MOST_EXPERTS = 1024
_GROUPED = Geometry(
    _threads(128),
    (Extent("n", 64), Extent(times=_EXPERTS_IN_TURN)),
    Shared(_MADE + 4 * _MOST_EXPERTS + 2 * _SORTED_PAIRS),
    source="experts_coded.cu",
)

_PARTS = 2048
"""Products that wait in shared memory for their sum: 16 floats, and a place in a sorted list."""

_GROUPED_SUMS = Geometry(
    _threads(512),
    (Extent("n", 16), Extent("rows", 256)),
    Shared(_PARTS * (16 * 4 + 2) + 4 * _MOST_EXPERTS),
    source="experts_coded.cu",
)
_HEADS_CODED = Geometry(
    _threads(128),
    (Extent("heads"), Extent("n", 64), Extent("rows", 64)),
    source="hlinear_coded.cu",
)


def _codes(fmt: FormatName) -> Iterator[tuple[str, Geometry]]:
    """Entries of one format that read coded activations."""
    for ending in ("", "_b"):
        yield f"route_q_{fmt}{ending}", _ROUTE_CODED
    yield f"xlinear_q_{fmt}", replace(_GROUPED, only="xlinear")
    for family in ("", "_s", "_sg"):
        yield f"xdown{family}_q_{fmt}", replace(_GROUPED_SUMS, only=f"xdown{family}")
        for out in ("", "_q", "_fq"):
            yield f"xglu{family}_q_{fmt}{out}", replace(_GROUPED, only=f"xglu{family}")
    for out in ("", "_q", "_fq"):
        yield f"hlinear_q_{fmt}{out}", _HEADS_CODED


def _floats(fmt: FormatName) -> Iterator[tuple[str, Geometry]]:
    """Entries of one format that read float activations."""
    for ending in ("", "_b"):
        yield f"route_{fmt}{ending}", _ROUTE
    yield f"xlinear_{fmt}", replace(_EACH_CHOICE, only="xlinear")
    sums = _sums(2 if FORMATS[fmt].quantized else 4)
    for family in ("", "_s", "_sg"):
        yield f"xdown{family}_{fmt}", replace(sums, only=f"xdown{family}")
        for out in ("", "_q", "_fq"):
            yield f"xglu{family}_{fmt}{out}", replace(_EACH_CHOICE, only=f"xglu{family}")
    for out in ("", "_q", "_fq"):
        yield f"hlinear_{fmt}{out}", _HEADS
    yield f"hlinear_t_{fmt}", _TRANSPOSED


GEOMETRIES: tuple[tuple[str, Geometry], ...] = (
    ("score", _CHOICE),
    ("renorm", _CHOICE),
    ("topk", _TOPK),
    ("topk_b", _TOPK),
    ("xsum", Geometry(_threads(256), (Extent("n", 256), Extent("rows")))),
    *(row for fmt in FORMATS for row in _floats(fmt)),
    *(row for fmt in BF16.formats for row in _codes(fmt)),
)
"""Patterns of entry names, the first that matches deciding."""

VARIANTS: tuple[Variant, ...] = ()
"""Kernels to take in place of others where they suit, the first that does."""
