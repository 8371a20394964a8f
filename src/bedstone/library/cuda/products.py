"""Geometry of the CUDA kernels: matrix products."""

from bedstone.library.kernel import Extent, Geometry, Shared, Variant
from bedstone.spec.dtype import FORMATS

MULTIPROCESSORS = 132
"""Blocks that a product of float activations is dealt over: one a multiprocessor of an H200."""

ENDINGS = ("", "_b", "_rows", "_b_rows")

STREAMED = Geometry(
    block=(320, 1, 1), grid=(Extent(times=MULTIPROCESSORS),), shared=Shared(104 * 1024)
)
"""Eight warps that multiply, one that streams weights to them, one that adds up."""

GEOMETRIES: tuple[tuple[str, Geometry], ...] = (
    *((f"linear_{name}{ending}", STREAMED) for name in FORMATS for ending in ENDINGS),
    *((f"parts[234]_{name}{ending}", STREAMED) for name in FORMATS for ending in ENDINGS),
    *((f"glu_{name}{ending}", STREAMED) for name in FORMATS for ending in ("", "_q", "_fq")),
)
"""Patterns of entry names, the first that matches deciding."""

VARIANTS: tuple[Variant, ...] = ()
"""Kernels to take in place of others where they suit, the first that does."""
