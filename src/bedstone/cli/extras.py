"""What a command needs beyond the package's own requirements."""

from collections.abc import Iterator
from contextlib import contextmanager

from bedstone.errors import TargetError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import inside what an extra installs.

    Raises `TargetError`: a package is missing; the message names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise TargetError(
            f"the package `{error.name}` is missing: install `bedstone[{name}]`"
        ) from error
