"""Geometry of the CUDA kernels: norms, rotations, moves, elementwise functions."""

from bedstone.library.kernel import Geometry

GEOMETRIES: tuple[tuple[str, Geometry], ...] = ()
"""Patterns of entry names, the first that matches deciding."""
