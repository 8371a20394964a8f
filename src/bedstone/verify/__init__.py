"""The rules a manifest must keep, and what a verified one promises."""
