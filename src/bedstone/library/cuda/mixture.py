"""Geometry of the CUDA kernels: mixtures of experts."""

from bedstone.library.kernel import Geometry

GEOMETRIES: tuple[tuple[str, Geometry], ...] = ()
"""Patterns of entry names, the first that matches deciding."""
