"""Our own library as a set: Definitions of its kernels, Solutions with sources, Workloads."""
