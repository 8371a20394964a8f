"""A call written as a JSON object with its name and its arguments, in either order."""

from collections.abc import Collection

import msgspec

from bedstone.serve.text.parts import Arguments, Called, Part
from bedstone.serve.text.tools.members import Members, State, Value

ARGUMENTS = ("arguments", "parameters")
NONE = "{}"


class JsonCall:
    """Reads `{"name": …, "arguments": {…}}`; the arguments pass on as they come.

    `names` are those that may be called, any where it is None. Where `state` is `broken` and
    nothing was `told`, all of `text` was no call.
    """

    def __init__(self, index: int, names: Collection[str] | None = None) -> None:
        self.text = ""
        self.told = False
        self._index = index
        self._names = names
        self._members = Members()
        self._refused = False
        self._name = ""
        self._early: list[str] = []
        self._arguments = _Object()

    @property
    def state(self) -> State:
        """Whether it goes on, is whole, or is no call."""
        if self._refused or (self._members.state == "done" and not self.told):
            return "broken"
        return self._members.state

    def add(self, text: str) -> tuple[list[Part], str]:
        """The parts that this text settles, and the part of it after the call."""
        values, rest = self._members.add(text)
        self.text += text[: len(text) - len(rest)]
        parts = [part for value in values for part in self._read(value)]
        if self.state == "done" and not self._arguments.whole:
            parts.append(Arguments(self._index, NONE))
        return parts, rest

    def _read(self, value: Value) -> list[Part]:
        if value.key == "name" and not self.told:
            return self._named(value)
        if value.key in ARGUMENTS and not self._arguments.whole:
            return self._argued(self._arguments.add(value))
        return []

    def _named(self, value: Value) -> list[Part]:
        self._name += value.text
        if not value.done:
            return []
        name, self._name = decoded(self._name), ""
        if not isinstance(name, str) or not name or self._unknown(name):
            self._refused = True
            return []
        self.told = not self._refused
        early: list[Part] = [Arguments(self._index, text) for text in self._early]
        return [Called(self._index, name), *early] if self.told else []

    def _unknown(self, name: str) -> bool:
        return self._names is not None and name not in self._names

    def _argued(self, text: str) -> list[Part]:
        if not text or self.told:
            return [Arguments(self._index, text)] if text else []
        self._early.append(text)
        return []


class _Object:
    """The JSON object that a value is, or that it holds in a string; `whole` when all is there."""

    def __init__(self) -> None:
        self.whole = False
        self._streams: bool | None = None
        self._other = ""

    def add(self, value: Value) -> str:
        """What may pass on now."""
        if self._streams is None and value.text:
            self._streams = value.text.startswith("{")
        self.whole = value.done
        if self._streams:
            return value.text
        self._other += value.text
        return self._unwrapped() if value.done else ""

    def _unwrapped(self) -> str:
        held = decoded(self._other)
        if held is None or held == "":
            return NONE
        inner = isinstance(held, str) and isinstance(decoded(held), dict)
        return str(held) if inner else self._other


def decoded(text: str) -> object:
    """The value that JSON text spells; None where it spells none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
