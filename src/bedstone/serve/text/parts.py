"""What an answer is made of, and whatever turns text into it."""

from collections.abc import Iterable
from typing import Protocol

from bedstone.spec.frozen import Frozen


class Said(Frozen):
    """Text for the reader."""

    text: str


class Thought(Frozen):
    """Text the model wrote to itself."""

    text: str


class Called(Frozen):
    """The start of a tool call, the `index`-th of its answer."""

    index: int
    name: str


class Arguments(Frozen):
    """More of the JSON text of a call's arguments."""

    index: int
    text: str


Part = Said | Thought | Called | Arguments


class Reader(Protocol):
    """Takes text as it is made; the parts do not depend on how it was cut."""

    @property
    def calls(self) -> int:
        """How many calls are whole."""

    def add(self, text: str) -> list[Part]:
        """The parts that this text settles."""

    def finish(self, *, cut: bool) -> list[Part]:
        """The parts of what was held back when no text follows, `cut` where more would have."""


class Plain:
    """All of it is for the reader."""

    calls = 0

    def add(self, text: str) -> list[Part]:
        """The text as it is."""
        return said(text)

    def finish(self, *, cut: bool) -> list[Part]:  # noqa: ARG002 - as of any reader
        """Nothing is held back."""
        return []


def said(text: str) -> list[Part]:
    """Text for the reader, if there is any."""
    return [Said(text)] if text else []


def joined(parts: Iterable[Part]) -> list[Part]:
    """The same parts with neighbours of a kind made one."""
    out: list[Part] = []
    for part in parts:
        last = out[-1] if out else None
        match part, last:
            case (Said(text), Said(before)):
                out[-1] = Said(before + text)
            case (Thought(text), Thought(before)):
                out[-1] = Thought(before + text)
            case (Arguments(index, text), Arguments(same, before)) if index == same:
                out[-1] = Arguments(index, before + text)
            case _:
                out.append(part)
    return out
