"""One fault of a manifest: what a parse stops at and what verification lists."""

from collections.abc import Callable, Iterable
from typing import Any

from bedstone.errors import ManifestError
from bedstone.spec.frozen import Frozen

SHOWN = 60
"""Characters of an untrusted string that a message quotes."""


class Fault(Frozen):
    """A broken rule, where it is broken, and by what.

    `rule` is a stable id (`P4`, `C3`, `O7`), `path` a JSON pointer into the manifest
    (`/ops/f/impl/launches/0/grid/1`; empty for the whole), `objects` the manifest's own objects at
    fault, each its kind and name (`buffer ids`), `message` one sentence with what was expected and
    what was found.
    """

    rule: str
    path: str
    objects: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"{place}{self.message} [{self.rule}]"


class ParseError(ManifestError):
    """A text is not a manifest; parsing stops at the first `fault`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault

    def __str__(self) -> str:
        return str(self.fault)


def pointer(parts: Iterable[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a trail of keys and indices."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def shown(text: str) -> str:
    """`text`, cut where it is too long to print."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def found(value: object) -> str:
    """A JSON value in a few words, for the end of a message."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "an integer over 64 bits"
    describe = _FOUND.get(type(value))
    return f"a {type(value).__name__}" if describe is None else describe(value)


_FOUND: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    str: lambda value: f'the string "{shown(value)}"',
    int: lambda value: f"the number {value}",
    float: lambda value: f"the number {value!r}",
    list: lambda value: f"an array of {len(value)}",
    dict: lambda _: "an object",
}
