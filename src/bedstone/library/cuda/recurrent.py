"""Geometry of the CUDA kernels: what carries a state of each sequence."""

from bedstone.library.kernel import Geometry

GEOMETRIES: tuple[tuple[str, Geometry], ...] = ()
"""Patterns of entry names, the first that matches deciding."""
