"""The CPU device: shared objects of C kernels, replayed over a pool of threads."""
