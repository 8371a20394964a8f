"""What an answer may look like, as grammars of `llguidance`: Lark with JSON schemas inside."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from bedstone.serve.text.reasoning import CLOSE, OPEN
from bedstone.serve.text.tools import hermes, qwen3_coder
from bedstone.serve.text.tools.schema import parameter_types
from bedstone.serve.text.tools.table import Way

Schemas = Mapping[str, object]
ANY_OBJECT = {"type": "object"}
ANY_TEXT = "/(?s:.*)/"
GAP = r"/[ \n]{0,4}/"
"""White space after a thought; with no end to it a model might never stop."""
DELIMITERS = re.compile(r"\\(.)|(/)|(\n)", re.DOTALL)
"""A pair with a backslash stays as it is, unless it is what ends a pattern in Lark."""
PLAIN = re.compile(r"[^<>\s]+")


def json_grammar(schema: object) -> str:
    """Text that is JSON of a schema."""
    return f"start: {_json(schema)}\n"


def regex_grammar(pattern: str) -> str:
    """Text that a regular expression matches as a whole."""
    return f"start: /{DELIMITERS.sub(_undelimited, pattern)}/\n"


def calls_grammar(way: Way, schemas: Schemas, *, several: bool) -> str:
    """A call of a tool in `schemas` and nothing else, or `several` one after another."""
    calls = " | ".join(f"call{at}" for at in range(len(schemas)))
    more = f" ({_text(_BETWEEN[way])} call)*" if several else ""
    rules = [
        rule
        for at, (name, schema) in enumerate(schemas.items())
        for rule in _CALLS[way](f"call{at}", name, ANY_OBJECT if schema is None else schema)
    ]
    return "\n".join([f"start: call{more}", f"call: {calls}", *rules, ""])


def after_thought(grammar: str, *, thinking: bool) -> str:
    """The same after a thought: one that is open already, or one that may be there."""
    thought = "thought" if thinking else f"({_text(OPEN)} thought)?"
    rules = f"thought[suffix={_text(CLOSE)}]: {ANY_TEXT}\nGAP: {GAP}\n"
    return f"start: {thought} GAP answer\n{grammar.replace('start:', 'answer:', 1)}{rules}"


def _hermes(rule: str, name: str, schema: object) -> list[str]:
    return _json_call(rule, name, schema, (f"{hermes.OPEN}\n", "arguments", f"\n{hermes.CLOSE}"))


def _llama3(rule: str, name: str, schema: object) -> list[str]:
    return _json_call(rule, name, schema, ("", "parameters", ""))


def _json_call(rule: str, name: str, schema: object, words: tuple[str, str, str]) -> list[str]:
    before, key, after = words
    opening = f'{before}{{"name": {json.dumps(name, ensure_ascii=False)}, "{key}": '
    return [f"{rule}: {_text(opening)} {rule}v {_text('}' + after)}", f"{rule}v: {_json(schema)}"]


def _qwen3_coder(rule: str, name: str, schema: object) -> list[str]:
    """Each parameter in turn, those that are not required or not."""
    opening = f"{qwen3_coder.OPEN}\n{qwen3_coder.FUNCTION}{name}>\n"
    given, required = _parameters(schema)
    parts, rules = [_text(opening)], []
    for at, (key, inner) in enumerate(given.items()):
        part = f"{rule}p{at}"
        parts.append(part if key in required else f"{part}?")
        rules += _parameter(part, key, inner, parameter_types(schema, key))
    parts.append(_text(f"{qwen3_coder.END}\n{qwen3_coder.CLOSE}"))
    return [f"{rule}: {' '.join(parts)}", *rules]


def _parameter(rule: str, key: str, schema: object, types: frozenset[str]) -> list[str]:
    opening = _text(f"{qwen3_coder.PARAMETER}{key}>\n")
    closing = _text(f"\n{qwen3_coder.PARAMETER_END}\n")
    if "string" in types:
        return [f"{rule}: {opening} {rule}v", f"{rule}v[suffix={closing}]: {ANY_TEXT}"]
    return [f"{rule}: {opening} {rule}v {closing}", f"{rule}v: {_json(schema)}"]


def _parameters(schema: object) -> tuple[Mapping[str, object], Sequence[object]]:
    """The parameters whose names a tag can hold, with schemas that stand by themselves."""
    known = schema if isinstance(schema, Mapping) else {}
    properties, required = known.get("properties"), known.get("required")
    definitions = {key: known[key] for key in ("$defs", "definitions") if key in known}
    given = {
        key: {**inner, **definitions} if isinstance(inner, Mapping) else inner
        for key, inner in (properties.items() if isinstance(properties, Mapping) else ())
        if PLAIN.fullmatch(key)
    }
    return given, cast("Sequence[object]", required) if isinstance(required, list) else ()


def _text(text: str) -> str:
    """Text as a literal; empty text is left out."""
    return json.dumps(text, ensure_ascii=False) if text else ""


def _json(schema: object) -> str:
    return f"%json {json.dumps(schema)}"


def _undelimited(found: re.Match[str]) -> str:
    pair, slash, _ = found.groups()
    if slash or pair == "/":
        return r"\x2F"
    return found[0] if pair and pair != "\n" else r"\n"


_CALLS: Mapping[Way, Callable[[str, str, object], Iterable[str]]] = {
    "hermes": _hermes,
    "llama3": _llama3,
    "qwen3_coder": _qwen3_coder,
}
_BETWEEN: Mapping[Way, str] = {"hermes": "\n", "llama3": "; ", "qwen3_coder": "\n"}
