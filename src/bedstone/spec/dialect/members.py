"""Builds the JSON members of an object, leaving out what says nothing."""

from collections.abc import Mapping
from typing import Any


def members(*pairs: tuple[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """An object of the pairs that are not None, then of `extra`'s that none of them named."""
    said = {name: value for name, value in pairs if value is not None}
    named = {name for name, _ in pairs}
    return said | {name: value for name, value in extra.items() if name not in named}


def unless(value: Any, neutral: Any) -> Any:  # noqa: ANN401  (any JSON value)
    """`value`, or None where it is what a missing member means."""
    return None if value == neutral else value
