"""What a decoder raises where a value does not fit its shape."""

from collections.abc import Iterable
from typing import NoReturn

from bedstone.spec.fault import found


class MisfitError(Exception):
    """A value that does not fit its shape; `trail` holds keys and indices, innermost first."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(rule, message)
        self.rule = rule
        self.message = message
        self.trail: list[str | int] = []


def misfit(expected: str, value: object) -> NoReturn:
    """Refuse a value of the wrong kind or range (P6), or a `null` that is not absence (P10)."""
    rule = "P10" if value is None else "P6"
    raise MisfitError(rule, f"expected {expected}, found {found(value)}")


def backticked(words: Iterable[str]) -> str:
    """The words as a message lists them."""
    return ", ".join(f"`{word}`" for word in words)
