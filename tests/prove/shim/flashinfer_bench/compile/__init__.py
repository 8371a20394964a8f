"""Solutions built and called, over ours."""
