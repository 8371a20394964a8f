"""Geometry of the CUDA kernels: matrix products."""

from bedstone.library.kernel import Geometry, Variant

GEOMETRIES: tuple[tuple[str, Geometry], ...] = ()
"""Patterns of entry names, the first that matches deciding."""

VARIANTS: tuple[Variant, ...] = ()
"""Kernels to take in place of others where they suit, the first that does."""
