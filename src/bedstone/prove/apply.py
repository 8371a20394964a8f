"""A function that a Solution may stand in for: a decorator that costs nothing until it is enabled.

    @apply("rmsnorm_h4096")
    def rmsnorm(hidden_states, weight): ...

    with enable(table):
        rmsnorm(x, w)       # a measured Solution where there is one, else the function itself

This module imports nothing heavy: an engine may use it whether or not anyone ever enables it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Table(Protocol):
    """Finds what stands in for a call."""

    def find(
        self, definition: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> Callable[[], object] | None:
        """What to do instead of a call with these arguments; None to leave it as it is."""
        ...


_tables: list[Table] = []


def apply(
    definition: str | Callable[..., str],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let Solutions of a Definition stand in for a function that takes its inputs.

    Args:
        definition: Its name, or a function of the call's arguments that gives it.

    Returns:
        A decorator.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if not _tables:
                return function(*args, **kwargs)
            name = definition if isinstance(definition, str) else definition(*args, **kwargs)
            other = _tables[-1].find(name, args, kwargs)
            if other is None:
                return function(*args, **kwargs)
            return other()  # type: ignore[return-value]  # a Solution of what it computes

        return call

    return decorate


@contextmanager
def enable(table: Table) -> Iterator[Table]:
    """Use a table until the block ends; the innermost of several counts."""
    _tables.append(table)
    try:
        yield table
    finally:
        _tables.remove(table)
