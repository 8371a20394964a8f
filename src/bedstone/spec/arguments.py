"""A call's arguments in the order a Definition has them."""

from collections.abc import Mapping, Sequence
from typing import Any


def merge_arguments(
    names: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Positional and named arguments as positional ones, up to the first that is missing.

    Args:
        names: Every argument in order: inputs, then outputs.
        args: Those given by position.
        kwargs: Those given by name.

    Returns:
        All of them in order.

    Raises:
        TypeError: there are too many, or one is given twice, as in a call.
    """
    if len(args) > len(names):
        raise TypeError(f"expected at most {len(names)} arguments, found {len(args)}")
    twice = [name for name in names[: len(args)] if name in kwargs]
    if twice:
        raise TypeError(f"argument `{twice[0]}` is given twice")
    merged = list(args)
    for name in names[len(args) :]:
        if name not in kwargs:
            break
        merged.append(kwargs[name])
    return tuple(merged)
