"""Calls as Qwen3-Coder writes them: tags for the function and each parameter, values without types.

<tool_call><function=NAME><parameter=KEY>value</parameter></function></tool_call>
"""

import json
from collections.abc import Mapping

from bedstone.serve.text.parts import Arguments, Called, Part, Said, said
from bedstone.serve.text.stops import held
from bedstone.serve.text.tools.schema import json_value, parameter_types

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
MARKERS = (OPEN, CLOSE)
NAME_LIMIT = 256
"""Characters of a function's or a parameter's name."""
ENDS = (PARAMETER_END, PARAMETER, END, CLOSE)
"""A value ends at any of these: models leave closing tags out."""
STRING = frozenset({"string"})


class Qwen3Coder:
    """Reads calls between text; `schemas` give the types of each function's parameters.

    Values that can only be strings pass on as they come, others when they are whole.
    """

    def __init__(self, schemas: Mapping[str, object]) -> None:
        self.calls = 0
        self._schemas = schemas
        self._text = ""
        self._raw = ""
        self._schema: object = None
        self._given: set[str] = set()
        self._value = _Value("", STRING)
        self._read = self._outside

    def add(self, text: str) -> list[Part]:
        """The parts that this text settles."""
        self._text += text
        return self._read()

    def finish(self, *, cut: bool) -> list[Part]:
        """The parts of what was held back when no text follows; unless `cut`, a call is whole."""
        text, self._text = self._raw + self._text, ""
        if self._read in {self._outside, self._tagged, self._name}:
            return said(text) if text.strip() or not self.calls else []
        if cut or self._read in {self._after, self._gap}:
            return []
        value = self._told(text[: len(text) - held(text, ENDS)], ended=True)
        return [*value, *self._ended()] if self._read == self._in_value else self._ended()

    def _outside(self) -> list[Part]:
        found = _first(self._text, (OPEN, FUNCTION))
        if found is None:
            kept = self._text[: len(self._text) - held(self._text, (OPEN, FUNCTION))].rstrip()
            self._text = self._text[len(kept) :]
            return said(kept)
        at, tag = found
        settled = self._text[:at].rstrip()
        self._raw = self._text[len(settled) : at + len(tag)]
        self._text = self._text[at + len(tag) :]
        self._read = self._tagged if tag == OPEN else self._name
        return said(settled) + self._read()

    def _tagged(self) -> list[Part]:
        """After `<tool_call>`."""
        solid = self._text.lstrip()
        if FUNCTION.startswith(solid) and solid != FUNCTION:
            return []
        if not solid.startswith(FUNCTION):
            return self._no_call()
        self._raw += self._text[: len(self._text) - len(solid)] + FUNCTION
        self._text = solid.removeprefix(FUNCTION)
        self._read = self._name
        return self._read()

    def _no_call(self) -> list[Part]:
        raw, self._raw = self._raw, ""
        self._read = self._outside
        return [Said(raw), *self._read()]

    def _name(self) -> list[Part]:
        name, close, rest = self._text.partition(">")
        if not _may_name(name) or (close and not name):
            return self._no_call()
        if not close:
            return []
        self._text, self._raw = rest, ""
        self._schema = self._schemas.get(name)
        self._given = set()
        self._read = self._body
        return [Called(self.calls, name), *self._read()]

    def _body(self) -> list[Part]:
        """Between parameters: anything but a tag is skipped."""
        found = _first(self._text, (PARAMETER, END, CLOSE))
        if found is None:
            self._text = self._text[len(self._text) - held(self._text, ENDS) :]
            return []
        at, tag = found
        if tag == PARAMETER:
            self._text = self._text[at + len(tag) :]
            self._read = self._key
            return self._read()
        self._text = self._text[at + len(END) :] if tag == END else self._text[at:]
        return self._ended() + self._read()

    def _key(self) -> list[Part]:
        key, close, rest = self._text.partition(">")
        if not _may_name(key):
            self._read = self._body
            return self._read()
        if not close:
            return []
        self._text = rest
        self._value = _Value(key, parameter_types(self._schema, key))
        self._read = self._in_value
        return self._read()

    def _in_value(self) -> list[Part]:
        found = _first(self._text, ENDS)
        if found is None:
            kept = len(self._text) - held(self._text, ENDS)
            text, self._text = self._text[:kept], self._text[kept:]
            return self._told(text, ended=False)
        at, tag = found
        text = self._text[:at]
        self._text = self._text[at + len(tag) :] if tag == PARAMETER_END else self._text[at:]
        parts = self._told(text, ended=True)
        self._read = self._body
        return parts + self._read()

    def _told(self, text: str, *, ended: bool) -> list[Part]:
        """More of the present value; a parameter that was given already is not given again."""
        value = self._value
        told = value.add(text, ended=ended)
        if value.key in self._given:
            return []
        if told and not value.begun:
            value.begun = True
            opening = ", " if self._given else "{"
            told = f"{opening}{json.dumps(value.key, ensure_ascii=False)}: {told}"
        if ended and value.begun:
            self._given.add(value.key)
        return [Arguments(self.calls, told)] if told else []

    def _ended(self) -> list[Part]:
        index, self.calls = self.calls, self.calls + 1
        self._read = self._after
        return [Arguments(index, "}" if self._given else "{}")]

    def _after(self) -> list[Part]:
        """Between a call's end and its closing tag, which may be missing."""
        self._text = self._text.lstrip()
        if CLOSE.startswith(self._text) and self._text != CLOSE:
            return []
        self._text = self._text.removeprefix(CLOSE)
        self._read = self._gap
        return self._read()

    def _gap(self) -> list[Part]:
        self._text = self._text.lstrip()
        if not self._text:
            return []
        self._read = self._outside
        return self._read()


class _Value:
    """A parameter's value: the line break after its opening tag and before its end are no part."""

    def __init__(self, key: str, types: frozenset[str]) -> None:
        self.key = key
        self.begun = False
        self._types = types
        self._text = ""
        self._led = False
        self._quoted = False

    def add(self, text: str, *, ended: bool) -> str:
        """The JSON text that can be told now; all of it by the time it is `ended`."""
        self._text += text
        if self._text and not self._led:
            self._led = True
            self._text = self._text.removeprefix("\n")
        if ended:
            self._text = self._text.removesuffix("\n")
        if self._types == STRING:
            return self._string(ended=ended)
        return (json_value(self._text, self._types) or "") if ended else ""

    def _string(self, *, ended: bool) -> str:
        size = len(self._text if ended else self._text.removesuffix("\n"))
        text, self._text = self._text[:size], self._text[size:]
        opening = "" if self._quoted else '"'
        if not text and not ended:
            return ""
        self._quoted = True
        return opening + json.dumps(text, ensure_ascii=False)[1:-1] + ('"' if ended else "")


def _may_name(name: str) -> bool:
    return len(name) <= NAME_LIMIT and not set(name) & {"<", "\n"}


def _first(text: str, tags: tuple[str, ...]) -> tuple[int, str] | None:
    """Where the first of some tags is, and which."""
    found = [(at, tag) for tag in tags if (at := text.find(tag)) >= 0]
    return min(found, default=None)
