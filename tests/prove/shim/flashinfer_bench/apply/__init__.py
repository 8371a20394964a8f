"""Choosing by sizes, over ours."""
