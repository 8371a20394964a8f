"""From a text to a JSON value, strictly or with repairs, and to whichever kind it is."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from bedstone.errors import DefinitionError
from bedstone.spec.dialect import Reading
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.dialect.repair import Repair, repair
from bedstone.spec.dialect.solution import parse_solution
from bedstone.spec.dialect.trace import parse_trace
from bedstone.spec.fault import ParseError
from bedstone.spec.text import parse_json

Kind = Literal["definition", "solution", "trace"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text's JSON value, and the repairs that made it one."""

    value: Any
    repairs: tuple[Repair, ...] = ()


def parse_text(text: str | bytes, *, mend: bool = False) -> Parsed:
    """The JSON value of a text, which is untrusted.

    Args:
        text: UTF-8 where bytes.
        mend: Repair what can be; each repair is listed.

    Returns:
        The value and the repairs made.

    Raises:
        DefinitionError: the text is not JSON; the message names line and column.
    """
    repairs: tuple[Repair, ...] = ()
    try:
        if mend:
            plain = text if isinstance(text, str) else text.decode(errors="replace")
            text, repairs = repair(plain)
        return Parsed(parse_json(text), repairs)
    except ParseError as error:
        raise DefinitionError(error.fault.message) from None


def parse_lines(text: str | bytes, *, mend: bool = False) -> Iterator[tuple[int, Parsed]]:
    """The JSON values of a text of one a line, with their line numbers; blank lines are skipped."""
    plain = text if isinstance(text, str) else text.decode(errors="surrogateescape")
    for number, line in enumerate(plain.split("\n"), 1):
        if line.strip():
            try:
                yield number, parse_text(line, mend=mend)
            except DefinitionError as error:
                raise DefinitionError(f"line {number} of the file: {error}") from None


def kind_of(value: object) -> Kind:
    """What a JSON value is meant to be."""
    members = value.keys() if isinstance(value, dict) else ()
    if "sources" in members:
        return "solution"
    if "workload" in members or ("uuid" in members and "axes" in members):
        return "trace"
    return "definition"


def parse_document(value: object) -> Reading[Any]:
    """A Definition, Solution or Trace, whichever `value` is meant to be."""
    match kind_of(value):
        case "definition":
            return parse_definition(value)
        case "solution":
            return parse_solution(value)
        case "trace":
            return parse_trace(value)


def emit_text(value: dict[str, Any]) -> str:
    """The text of a file that holds one value."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def emit_line(value: dict[str, Any]) -> str:
    """The text of one line of a file that holds many, without its newline."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
