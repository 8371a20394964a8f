"""Evidence for kernels and swaps."""
