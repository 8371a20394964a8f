"""Compiles kernels, emits the manifest and writes the package."""
