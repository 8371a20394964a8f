"""CUDA kernels of the library: how each entry of the catalog is launched on a GPU."""
