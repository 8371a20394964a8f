"""Makes JSON of a text that nearly is, and says what it changed.

Three faults that hand-written Definitions have: a comma before a closing bracket, no comma between
two members, and a member without the braces around it. Whatever else is wrong stays wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
_CLOSING = frozenset("}]")
_BEFORE_VALUE, _AFTER_VALUE = frozenset("{[,:"), frozenset("}],:")


@dataclass(frozen=True, slots=True)
class Repair:
    """One change to a text, where it was made."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line} column {self.column}: {self.message}"


@dataclass(frozen=True, slots=True)
class _Edit:
    """Text to put at an offset in place of `length` characters."""

    at: int
    length: int
    text: str
    message: str


def repair(text: str) -> tuple[str, tuple[Repair, ...]]:
    """The text with its repairs made, and the list of them; the same text where there are none."""
    edits = sorted([*_commas(text), *_braces(text)], key=lambda edit: edit.at)
    pieces: list[str] = []
    done = 0
    for edit in edits:
        pieces += [text[done : edit.at], edit.text]
        done = edit.at + edit.length
    return "".join([*pieces, text[done:]]), tuple(_placed(text, edit) for edit in edits)


def _placed(text: str, edit: _Edit) -> Repair:
    line = text.count("\n", 0, edit.at) + 1
    return Repair(line, edit.at - text.rfind("\n", 0, edit.at), edit.message)


def _commas(text: str) -> Iterator[_Edit]:
    """Commas that are too many before a closing bracket, or missing between two values."""
    before: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        if before is not None:
            if before[0] == "," and token[0] in _CLOSING:
                message = f"a comma before `{token[0]}` was removed"
                yield _Edit(before.start(), 1, "", message)
            elif _ends_value(before[0]) and _begins_value(token[0]):
                yield _Edit(before.end(), 0, ",", "a missing comma was added")
        before = token
    if before is not None and before[0] == ",":
        yield _Edit(before.start(), 1, "", "a comma at the end was removed")


def _ends_value(word: str) -> bool:
    return word not in _BEFORE_VALUE


def _begins_value(word: str) -> bool:
    return word not in _AFTER_VALUE


def _braces(text: str) -> Iterator[_Edit]:
    """Braces around a fragment: a text that begins with a member's name."""
    tokens = _TOKEN.finditer(text)
    first, second = next(tokens, None), next(tokens, None)
    if first is not None and first[0].startswith('"') and second is not None and second[0] == ":":
        yield _Edit(first.start(), 0, "{", "a member without its object: braces were added")
        yield _Edit(len(text.rstrip()), 0, "}", "the closing brace of the added ones")
