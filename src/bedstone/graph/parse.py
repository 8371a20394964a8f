"""The text form of a StepGraph, read back (`graph.text` writes it and describes it)."""

import json
import re
from dataclasses import MISSING, fields
from typing import Any, get_args

from bedstone.errors import CallerError
from bedstone.graph.infer import with_values
from bedstone.graph.step import AtParam, Fixed, Op, StepGraph
from bedstone.graph.text import DECLARED, KEYWORDS, WORD, Graph, class_word, lead_field

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf)(?![\w.@]))"
    rf"|(?P<word>{WORD.pattern})"
    r'|(?P<quoted>"(?:[^"\\]|\\.)*")'
    r"|(?P<mark>[(),=])"
)
_OPS: tuple[type, ...] = get_args(Op)
_CLASSES: dict[str, type] = {
    class_word(cls): cls for cls in (Graph, *DECLARED, *_OPS, AtParam, Fixed)
}


def parse(text: str) -> StepGraph:
    """The graph in `text`, with `values` inferred; blank lines and `#` comments are skipped.

    A line that does not parse is a `CallerError` that names its number.
    """
    readers = [
        _Reader(line, number)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not readers:
        raise CallerError("graph text: holds no graph")
    head = readers[0].entry((Graph,))
    entries = [reader.entry((*DECLARED, *_OPS)) for reader in readers[1:]]
    declared: dict[str, Any] = {
        field: {entry.name: entry for entry in entries if _field(entry) == field}
        for field in DECLARED.values()
    }
    ops = tuple(entry for entry in entries if _field(entry) is None)
    parts = {f.name: getattr(head, f.name) for f in fields(Graph)}
    return with_values(StepGraph(ops=ops, **parts, **declared))


def _field(entry: object) -> str | None:
    """Where a StepGraph keeps a declaration; None for an op."""
    return DECLARED.get(type(entry))


class _Reader:
    """One line, read token by token."""

    def __init__(self, line: str, number: int) -> None:
        self._number = number
        self._tokens = [*self._split(line), ("end", "")]
        self._at = 0

    def entry(self, allowed: tuple[type, ...]) -> Any:  # noqa: ANN401 - the line says which
        """What the line says: an op, a declaration or the graph's own line, as `allowed`."""
        lead = None
        if self._tokens[1] == ("mark", "="):
            lead = self._value()
            self._take("=")
        word = self._next()[1]
        made = self._call(word, lead)
        self._take("")
        if not isinstance(made, allowed):
            raise self._error(f"`{word}` makes no line")
        return made

    def _split(self, line: str) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(line):
            match = _TOKEN.match(line, at)
            if match is None:
                raise self._error(f"`{line[at:]}` is no token")
            if match.lastgroup != "space":
                tokens.append((str(match.lastgroup), match.group()))
            at = match.end()
        return tokens

    def _next(self) -> tuple[str, str]:
        token = self._tokens[min(self._at, len(self._tokens) - 1)]
        self._at += 1
        return token

    def _take(self, mark: str) -> None:
        found = self._next()[1]
        if found != mark:
            raise self._error(f"expected `{mark or 'the end'}`, found `{found or 'the end'}`")

    def _value(self) -> object:
        kind, text = self._next()
        match kind:
            case "number":
                return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
            case "quoted":
                return json.loads(text)
            case "word":
                following = self._tokens[self._at] == ("mark", "(")
                return self._call(text) if following else KEYWORDS.get(text, text)
            case _ if text == "(":
                return self._members()
            case _:
                raise self._error(f"expected a value, found `{text or 'the end'}`")

    def _members(self) -> tuple[object, ...]:
        members: list[object] = []
        while self._tokens[self._at][1] != ")":
            members.append(self._value())
            if self._tokens[self._at][1] != ")":
                self._take(",")
        self._take(")")
        return tuple(members)

    def _call(self, word: str, lead: object = None) -> object:
        cls = _CLASSES.get(word)
        if cls is None:
            raise self._error(f"`{word}` is no op")
        self._take("(")
        given: dict[str, object] = {}
        while self._tokens[self._at][1] != ")":
            name = self._next()[1]
            self._take("=")
            given[name] = self._value()
            if self._tokens[self._at][1] != ")":
                self._take(",")
        self._take(")")
        return self._construct(cls, given, lead)

    def _construct(self, cls: type, given: dict[str, object], lead: object) -> object:
        field = lead_field(cls)
        if lead is not None and field is not None:
            given = {field: lead, **given}
        known = {f.name: f.default is MISSING for f in fields(cls)}
        wrong = sorted(given.keys() - known.keys())
        lacking = [name for name, needed in known.items() if needed and name not in given]
        if wrong or lacking:
            what = f"no field `{wrong[0]}`" if wrong else f"a field `{lacking[0]}` unset"
            raise self._error(f"`{class_word(cls)}` has {what}")
        return cls(**given)

    def _error(self, message: str) -> CallerError:
        return CallerError(f"graph text: line {self._number}: {message}")
