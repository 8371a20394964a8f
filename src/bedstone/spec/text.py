"""From text to a JSON value, strictly: the text is untrusted.

What plain JSON readers let pass and this one refuses: a byte order mark, NaN and infinities,
doubles out of range, a repeated key, a lone surrogate, more than 127 levels. A number is an int
only where its literal has neither point nor exponent and fits i64 or u64; anything else, `-0`
included, is a double.
"""

import math
import re
from json import JSONDecodeError, JSONDecoder

from bedstone.spec.fault import Fault, ParseError, shown

DEPTH = 127
"""Containers that may nest."""

_SCALARS = (str, int, float, bool, type(None))
_LONGEST_INT = len(str(-(2**63)))
# Possessive, so that no input makes them backtrack or keep a stack.
_STRING = r'("[^"\\]*+(?:\\.[^"\\]*+)*+")'
_STRING_OR_BRACE = re.compile(_STRING + r"([ \t\n\r]*+:)?|[{}]", re.DOTALL)
_STRING_OR_WORD = re.compile(_STRING + r"|[-+.\w]++", re.DOTALL)
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


class _BadNumberError(Exception):
    """A literal that no double holds."""


class _DuplicateError(Exception):
    """An object repeats a key."""


def parse_json(text: bytes | str) -> object:
    """The JSON value of `text` (UTF-8 where bytes).

    A `ParseError` of rule P1 (not strict JSON) or P2 (a repeated key) names line and column.
    """
    text = _decoded(text)
    try:
        value = _DECODER.decode(text)
    except JSONDecodeError as error:
        raise _fault("P1", f"not JSON: {error.msg.lower()}", text, error.pos) from None
    except RecursionError:
        raise _too_deep() from None
    except _BadNumberError as error:
        raise _out_of_range(text, str(error)) from None
    except _DuplicateError:
        raise _repeated_key(text) from None
    _require_paired_surrogates(text)
    require_shallow(value)
    return value


def require_shallow(value: object) -> None:
    """Require (rule P1) that `value` nests no more than 127 containers."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise _too_deep()


def require_json(value: object) -> None:
    """Require (rule P1) of a value decoded elsewhere that it is a JSON value, shallow enough."""
    require_shallow(value)
    nodes = [value]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            _require_names(node)
            nodes.extend(node.values())
        elif isinstance(node, list):
            nodes.extend(node)
        elif not isinstance(node, _SCALARS):
            raise ParseError(Fault("P1", "", (), f"expected a JSON value, found {node!r:.60}"))


def _require_names(members: dict[object, object]) -> None:
    for name in members:
        if type(name) is not str:
            raise ParseError(Fault("P1", "", (), f"expected strings as keys, found {name!r:.60}"))


def _decoded(text: bytes | str) -> str:
    try:
        if isinstance(text, str):
            text.encode()
            return text
        return bytes(text).decode()
    except UnicodeDecodeError as error:
        message = f"not UTF-8: {error.reason} at byte {error.start}"
    except UnicodeEncodeError as error:
        message = f"not UTF-8: lone surrogate at character {error.start}"
    raise ParseError(Fault("P1", "", (), message)) from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateError
    return members


def _integer(literal: str) -> int | float:
    # A longer literal exceeds 64 bits; `int` would take quadratic time or refuse it.
    if len(literal) <= _LONGEST_INT:
        value = int(literal)
        if -(2**63) <= value < 2**64 and literal != "-0":
            return value
    return _double(literal)


def _double(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise _BadNumberError(literal)
    return value


def _constant(name: str) -> object:
    raise _BadNumberError(name)


_DECODER = JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_double, parse_constant=_constant
)


def _require_paired_surrogates(text: str) -> None:
    if "\\u" not in text:
        return
    for escape in _ESCAPE.finditer(text):
        if escape[1]:
            message = f"not JSON: lone surrogate `{escape[1]}`"
            raise _fault("P1", message, text, escape.start())


def _out_of_range(text: str, literal: str) -> ParseError:
    message = f"number out of range: expected a finite double, found {shown(literal)}"
    words = _STRING_OR_WORD.finditer(text)
    return _fault("P1", message, text, next(w.start() for w in words if w[0] == literal))


def _repeated_key(text: str) -> ParseError:
    """The first repeated key of a text that is JSON up to there."""
    open_objects: list[set[str]] = []
    for token in _STRING_OR_BRACE.finditer(text):
        if token[0] == "{":
            open_objects.append(set())
        elif token[0] == "}":
            open_objects.pop()
        elif token[2]:
            key = _DECODER.decode(token[1])
            if key in open_objects[-1]:
                message = f"duplicate name `{shown(key)}`: expected each key once in an object"
                return _fault("P2", message, text, token.start())
            open_objects[-1].add(key)
    return ParseError(Fault("P2", "", (), "an object repeats a key"))


def _fault(rule: str, message: str, text: str, at: int) -> ParseError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return ParseError(Fault(rule, "", (), f"{message} (line {line} column {column})"))


def _too_deep() -> ParseError:
    return ParseError(Fault("P1", "", (), f"expected at most {DEPTH} nested containers"))
