"""Geometry of the CUDA kernels: matrix products."""

from collections.abc import Iterator
from dataclasses import replace

from bedstone.library.kernel import Extent, Geometry, Shared, Variant
from bedstone.spec.dtype import FORMATS

BLOCKS = 2 * 132
"""Blocks that a product of float activations is dealt over: two a multiprocessor of an H200."""

ENDINGS = ("", "_b", "_rows", "_b_rows")
EPILOGUES = ("_add", "_b_add", "_cap")

STREAMED = Geometry(
    block=(256, 1, 1), grid=(Extent(times=BLOCKS),), shared=Shared(96 * 1024), rounds=True
)
"""Eight warps, each with a ring of weights of its own."""

CODED = replace(STREAMED, block=(288, 1, 1))
"""Eight warps that multiply, one that keeps a ring of weights filled for all."""


def _streamed() -> Iterator[tuple[str, Geometry]]:
    """The entries of a family are a module of their own: each takes seconds to compile."""
    endings = {
        "linear": (*ENDINGS, *EPILOGUES),
        "parts2": ENDINGS,
        "parts3": ENDINGS,
        "parts4": ("",),
        "glu": ("", "_q", "_fq"),
    }
    for family, each in endings.items():
        whole = replace(STREAMED, only=family)
        blocks = replace(whole, rounded=replace(CODED, only=family))
        for name, fmt in FORMATS.items():
            geometry = blocks if fmt.quantized else whole
            yield from ((f"{family}_{name}{ending}", geometry) for ending in each)


GEOMETRIES: tuple[tuple[str, Geometry], ...] = tuple(_streamed())
"""Patterns of entry names, the first that matches deciding."""

VARIANTS: tuple[Variant, ...] = ()
"""Kernels to take in place of others where they suit, the first that does."""
