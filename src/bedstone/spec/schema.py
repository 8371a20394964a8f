"""The JSON Schema of a manifest, from the same shapes the codec reads by.

It describes the wire form: wherever a number may stand, so may the name of a constant.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from bedstone.spec.grammar import DEFINITIONS, MANIFEST
from bedstone.spec.param import pattern
from bedstone.spec.shape import (
    Boolean,
    ByField,
    ByTag,
    ByValue,
    Choice,
    Either,
    Integer,
    List,
    Number,
    Param,
    Positional,
    Record,
    Ref,
    Row,
    Shape,
    Table,
    Text,
    Wrap,
)

Json = dict[str, Any]

_CONSTANT = {
    "description": "Name of a numeric constant declared in `constants`.",
    "minLength": 1,
    "type": "string",
}


def schema() -> Json:
    """The schema of manifest v7, draft 2020-12."""
    manifest = _described(MANIFEST, _schema(MANIFEST))
    manifest["properties"]["constants"] = {
        "additionalProperties": {"type": "number"},
        "description": "Named numbers; the names may stand wherever a number may.",
        "propertyNames": {"minLength": 1},
        "type": "object",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://kern-baa.pages.dev/schema/manifest-v7.schema.json",
        "title": "kern manifest v7",
        **manifest,
        "$defs": {name: _described(shape, _schema(shape)) for name, shape in DEFINITIONS.items()},
    }


def _described(shape: Shape, json: Json) -> Json:
    prose = inspect.getdoc(shape.kind) if isinstance(shape, Record) else None
    return {"description": prose, **json} if prose else json


def _schema(shape: Shape) -> Json:
    return _MAKE[type(shape)](shape)


# --- scalars ---------------------------------------------------------------------------------


def _integer(shape: Integer) -> Json:
    return _numeric(shape, "integer")


def _number(shape: Number) -> Json:
    return _numeric(shape, "number")


def _numeric(shape: Integer | Number, kind: str | list[str]) -> Json:
    json: Json = {"format": shape.format, "type": kind}
    if isinstance(shape, Integer) and shape.low == 0:
        json["minimum"] = 0
        if shape.high < 2**16:
            json["maximum"] = shape.high
    if isinstance(shape, Integer) and shape.literal:
        return json
    return {"anyOf": [json, dict(_CONSTANT)]}


def _choice(shape: Choice) -> Json:
    groups = [_words(group) for group in shape.groups]
    return groups[0] if len(groups) == 1 else {"oneOf": groups}


def _words(group: tuple[str, ...]) -> Json:
    if len(group) == 1:
        return {"const": group[0], "type": "string"}
    return {"enum": list(group), "type": "string"}


# --- containers ------------------------------------------------------------------------------


def _list(shape: List) -> Json:
    json: Json = {"items": _schema(shape.item), "type": "array"}
    if shape.length is not None:
        json |= {"minItems": shape.length, "maxItems": shape.length}
    return json


def _positional(shape: Positional) -> Json:
    count = len(shape.items)
    return {
        "prefixItems": [_schema(item) for item in shape.items],
        "minItems": count,
        "maxItems": count,
        "type": "array",
    }


def _table(shape: Table) -> Json:
    return {"additionalProperties": _schema(shape.item), "type": "object"}


def _record(shape: Record) -> Json:
    json: Json = {
        "properties": {row.name: _member(row) for row in shape.rows},
        "type": "object",
    }
    if required := [row.name for row in shape.rows if row.required]:
        json["required"] = required
    if shape.flat:
        return json | _schema(shape.flat.shape)
    return json | {"additionalProperties": False}


def _member(row: Row) -> Json:
    return _or_null(row.shape) if row.nullable else _schema(row.shape)


def _or_null(shape: Shape) -> Json:
    """The schema of `shape` or `null`, as the published schema spells it for each kind."""
    if isinstance(shape, Ref):
        return {"anyOf": [_schema(shape), {"type": "null"}]}
    if isinstance(shape, Integer):
        return _numeric(shape, ["integer", "null"])
    json = _schema(shape)
    return json | {"type": [json["type"], "null"]}


def _wrap(shape: Wrap) -> Json:
    return {
        "additionalProperties": False,
        "properties": {shape.tag: _schema(shape.shape)},
        "required": [shape.tag],
        "type": "object",
    }


# --- alternatives ----------------------------------------------------------------------------


def _any(shapes: Iterable[Shape]) -> Json:
    return {"anyOf": [_schema(shape) for shape in shapes]}


def _by_tag(shape: ByTag) -> Json:
    json = _any(shape.arms.values())
    if not shape.closed:
        for arm in json["anyOf"]:
            del arm["additionalProperties"]
    return json


def _by_value(shape: ByValue) -> Json:
    return {"oneOf": [_keyed(shape.key, word, arm) for word, arm in shape.arms.items()]}


def _keyed(key: str, word: str, arm: Record) -> Json:
    json = _record(arm)
    json["properties"][key] = _words((word,))
    json["required"] = [key, *json["required"]]
    return json


def _by_field(shape: ByField) -> Json:
    return _any((shape.marked, shape.plain))


def _either(shape: Either) -> Json:
    """Alternatives side by side: a choice among objects adds its own arms."""
    arms: list[Json] = []
    for alternative in shape.shapes:
        json = _schema(alternative)
        arms += json["anyOf"] if isinstance(alternative, ByTag) else [json]
    return {"anyOf": arms}


_MAKE: dict[type, Callable[[Any], Json]] = {
    Integer: _integer,
    Number: _number,
    Text: lambda _shape: {"type": "string"},
    Boolean: lambda _shape: {"type": "boolean"},
    Choice: _choice,
    Param: lambda _shape: {"pattern": pattern(), "type": "string"},
    List: _list,
    Positional: _positional,
    Table: _table,
    Record: _record,
    Wrap: _wrap,
    ByTag: _by_tag,
    ByValue: _by_value,
    ByField: _by_field,
    Either: _either,
    Ref: lambda shape: {"$ref": f"#/$defs/{shape.name}"},
}
