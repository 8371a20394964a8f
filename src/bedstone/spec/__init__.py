"""Frozen types of everything that crosses a boundary, and the strict JSON codec."""
