"""Which kernels exist for this hardware, and what this machine can run."""
