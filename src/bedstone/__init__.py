"""Bedstone turns a language model into a program that can be checked, then runs it."""

__all__: list[str] = []
