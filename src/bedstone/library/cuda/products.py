"""Geometry of the CUDA kernels: matrix products."""

from bedstone.library.kernel import Geometry

GEOMETRIES: tuple[tuple[str, Geometry], ...] = ()
"""Patterns of entry names, the first that matches deciding."""
