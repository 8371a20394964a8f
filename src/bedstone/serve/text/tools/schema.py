"""What type a tool's schema gives a parameter, and text as a value of that type."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import cast

from bedstone.serve.text.tools.call import decoded

LOCAL = re.compile(r"#/(\$defs|definitions)/([^/]+)")
NESTED = ("anyOf", "oneOf", "allOf")
KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
DEPTH = 8
"""References and alternatives are followed that deep."""

Schema = Mapping[str, object]


def parameter_types(schema: object, name: str) -> frozenset[str]:
    """The types that a function's schema allows for a parameter; a string where it says nothing."""
    if not isinstance(schema, Mapping):
        return frozenset({"string"})
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, Mapping) else None
    return frozenset(_types(found, schema, DEPTH)) or frozenset({"string"})


def _types(schema: object, root: Schema, depth: int) -> set[str]:
    if not isinstance(schema, Mapping) or not depth:
        return set()
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return {each for each in named if isinstance(each, str)}
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(listed, list):
        return {KINDS.get(type(each), "object") for each in listed}
    referred = _referred(schema.get("$ref"), root)
    if referred is not None:
        return _types(referred, root, depth - 1)
    nested = [each for key in NESTED for each in _listed(schema.get(key))]
    return {kind for each in nested for kind in _types(each, root, depth - 1)}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _referred(reference: object, root: Schema) -> object:
    found = LOCAL.fullmatch(reference) if isinstance(reference, str) else None
    definitions = root.get(found[1]) if found else None
    return definitions.get(found[2]) if found and isinstance(definitions, Mapping) else None


def json_value(text: str, types: frozenset[str]) -> str | None:
    """`text` as JSON of one of the types: the string where it is none of them, None to leave out.

    What is empty or spells no value is left out where it could not be a string.
    """
    stripped = text.strip()
    if "null" in types and stripped.lower() in {"null", "none"}:
        return "null"
    if "string" not in types and stripped.lower() in {"", "null", "none"}:
        return None
    for kind, convert in CONVERTERS.items():
        if kind in types and (value := convert(stripped)) is not None:
            return value
    return json.dumps(text, ensure_ascii=False)


def _boolean(text: str) -> str | None:
    return text.lower() if text.lower() in {"true", "false"} else None


def _integer(text: str) -> str | None:
    return text if re.fullmatch(r"-?(0|[1-9][0-9]*)", text, re.ASCII) else None


def _number(text: str) -> str | None:
    value = decoded(text)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return text if plain and math.isfinite(cast("float", value)) else None


def _array(text: str) -> str | None:
    return text if isinstance(decoded(text), list) else None


def _object(text: str) -> str | None:
    return text if isinstance(decoded(text), dict) else None


CONVERTERS: Mapping[str, Callable[[str], str | None]] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "array": _array,
    "object": _object,
}
