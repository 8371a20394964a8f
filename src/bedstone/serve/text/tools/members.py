"""One JSON object read as its text arrives, member by member."""

from collections.abc import Generator
from typing import Literal

import msgspec

from bedstone.spec.frozen import Frozen

SPACE = " \t\n\r"
SCALAR = frozenset("+-.0123456789Eaeflnrstu")
CLOSERS = {"{": "}", "[": "]"}
ESCAPES = {chr(code): f"\\u{code:04x}" for code in range(32)} | {
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}

Chars = Generator[None, str, None]
Found = Generator[None, str, str]
State = Literal["open", "done", "broken"]


class Value(Frozen):
    """More of the JSON text of a member's value; `done` with the last of it."""

    key: str
    text: str
    done: bool = False


class _BrokenError(Exception):
    """The text is no JSON object."""


class Members:
    """Reads the members of a JSON object; `state` says whether it goes on, has ended, or is none.

    Brackets, strings and commas are looked at, what stands inside a value is not. Control
    characters inside strings, which JSON forbids and models write, come out escaped.
    """

    def __init__(self) -> None:
        self.state: State = "open"
        self._values: list[Value] = []
        self._key = ""
        self._chunk: list[str] = []
        self._inside = False
        self._reading = self._object()
        next(self._reading)

    def add(self, text: str) -> tuple[list[Value], str]:
        """The values that are in this text, and the part of it after the object."""
        taken = 0
        for char in text:
            if self.state != "open":
                break
            self._take(char)
            taken += 1
        if self._chunk and self._inside:
            self._tell(done=False)
        found, self._values = self._values, []
        return found, text[taken:]

    def _take(self, char: str) -> None:
        try:
            self._reading.send(char)
        except StopIteration:
            self.state = "done"
        except _BrokenError:
            self.state = "broken"

    def _tell(self, *, done: bool) -> None:
        self._values.append(Value(self._key, "".join(self._chunk), done))
        self._chunk = []

    def _object(self) -> Chars:
        _require((yield from _solid()) == "{")
        char = yield from _solid()
        while char != "}":
            _require(char == '"')
            yield from self._member()
            char = yield from self._value((yield from _solid()))
            if char == ",":
                char = yield from _solid()
                _require(char != "}")
            else:
                _require(char == "}")

    def _member(self) -> Chars:
        """A key, whose opening quote is read, and its colon."""
        yield from self._string()
        self._key = _unquoted("".join(self._chunk))
        self._chunk = []
        _require((yield from _solid()) == ":")

    def _value(self, char: str) -> Found:
        """A value that begins with `char`; the first solid character after it."""
        self._inside = True
        if char == '"':
            yield from self._string()
            after = ""
        elif char in CLOSERS:
            yield from self._nested(char)
            after = ""
        else:
            after = yield from self._scalar(char)
        self._tell(done=True)
        self._inside = False
        return after if after and after not in SPACE else (yield from _solid())

    def _scalar(self, char: str) -> Found:
        _require(char in SCALAR)
        while char in SCALAR:
            self._chunk.append(char)
            char = yield
        return char

    def _nested(self, char: str) -> Chars:
        self._chunk.append(char)
        closers = [CLOSERS[char]]
        while closers:
            char = yield
            if char == '"':
                yield from self._string()
                continue
            self._chunk.append(char)
            if char in CLOSERS:
                closers.append(CLOSERS[char])
            elif char in "]}":
                _require(char == closers.pop())

    def _string(self) -> Chars:
        """A string whose opening quote is read."""
        self._chunk.append('"')
        char = yield
        while char != '"':
            self._chunk.append(ESCAPES.get(char, char))
            if char == "\\":
                char = yield
                self._chunk.append(char)
            char = yield
        self._chunk.append('"')


def _solid() -> Found:
    """The next character that is no white space."""
    char = yield
    while char in SPACE:
        char = yield
    return char


def _require(right: bool) -> None:  # noqa: FBT001 - a condition
    if not right:
        raise _BrokenError


def _unquoted(text: str) -> str:
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        raise _BrokenError from None
