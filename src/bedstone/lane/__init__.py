"""A step graph lowered to launches of the kernel library."""
