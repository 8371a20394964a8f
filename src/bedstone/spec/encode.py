"""From a typed value to canonical JSON text, by shape.

An encoder takes the value and the line break to put before its closing bracket: a newline and the
indentation of the line the value starts on.
"""

from collections.abc import Callable, Iterable, Mapping
from json import JSONEncoder
from typing import Any

from bedstone.spec.grammar import DEFINITIONS
from bedstone.spec.number import f32_text, f64_text
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

Encoder = Callable[[Any, str], str]

_INDENT = "  "
_quoted = JSONEncoder(ensure_ascii=False).encode


def encoder(shape: Shape) -> Encoder:
    """The function that writes values of `shape`."""
    return _MAKE[type(shape)](shape)


def _braced(members: list[str], brackets: str, pad: str) -> str:
    if not members:
        return brackets
    inner = pad + _INDENT
    return f"{brackets[0]}{inner}{(',' + inner).join(members)}{pad}{brackets[1]}"


# --- scalars ---------------------------------------------------------------------------------


def _scalar(write: Callable[[Any], str]) -> Callable[[Shape], Encoder]:
    def encode(value: object, _pad: str) -> str:
        return write(value)

    return lambda _shape: encode


def _number(shape: Number) -> Encoder:
    write = f32_text if shape.single else f64_text
    return lambda value, _pad: write(value)


# --- containers ------------------------------------------------------------------------------


def _list(shape: List) -> Encoder:
    item = encoder(shape.item)

    def encode(value: Iterable[object], pad: str) -> str:
        inner = pad + _INDENT
        return _braced([item(element, inner) for element in value], "[]", pad)

    return encode


def _positional(shape: Positional) -> Encoder:
    encoders = tuple(encoder(item) for item in shape.items)
    names = getattr(shape.kind, "__match_args__", ())

    def encode(value: Iterable[object], pad: str) -> str:
        inner = pad + _INDENT
        elements = [getattr(value, name) for name in names] or value
        texts = [item(e, inner) for item, e in zip(encoders, elements, strict=True)]
        return _braced(texts, "[]", pad)

    return encode


def _table(shape: Table) -> Encoder:
    item = encoder(shape.item)

    def encode(value: Mapping[str, object], pad: str) -> str:
        inner = pad + _INDENT
        members = [f"{_quoted(name)}: {item(value[name], inner)}" for name in sorted(value)]
        return _braced(members, "{}", pad)

    return encode


Members = Callable[[Any, str], list[str]]
"""Writes the members of an object, each `"name": value`."""


def _object(members: Members) -> Encoder:
    return lambda value, pad: _braced(members(value, pad + _INDENT), "{}", pad)


def _members(shape: Record | Wrap) -> Members:
    if isinstance(shape, Wrap):
        return _wrapped(shape)
    rows = [(row, encoder(row.shape)) for row in shape.rows]
    flat = _flat_members(shape.flat) if shape.flat else None

    def write(value: object, pad: str) -> list[str]:
        members = []
        for row, encode in rows:
            member = getattr(value, row.attribute)
            if row.required or member != row.default:
                members.append(f'"{row.name}": {encode(member, pad)}')
        return members if flat is None else members + flat(value, pad)

    return write


def _wrapped(shape: Wrap) -> Members:
    inner = encoder(shape.shape)
    return lambda value, pad: [f'"{shape.tag}": {inner(value, pad)}']


def _flat_members(row: Row) -> Members:
    if not isinstance(row.shape, ByTag):
        raise TypeError(f"expected the flat row `{row.name}` to be told apart by tag")
    arms = _tagged(row.shape)

    def write(value: object, pad: str) -> list[str]:
        source = getattr(value, row.attribute)
        return arms[type(source)](source, pad)

    return write


def _tagged(shape: ByTag) -> dict[type, Members]:
    return {kind: _members(arm) for arm in shape.arms.values() for kind in _types(arm)}


# --- alternatives ----------------------------------------------------------------------------


def _by_tag(shape: ByTag) -> Encoder:
    return _chosen({kind: _object(members) for kind, members in _tagged(shape).items()})


def _by_value(shape: ByValue) -> Encoder:
    return _chosen(
        {arm.kind: _object(_keyed(shape.key, word, arm)) for word, arm in shape.arms.items()}
    )


def _keyed(key: str, word: str, arm: Record) -> Members:
    members = _members(arm)
    return lambda value, pad: [f'"{key}": {_quoted(word)}', *members(value, pad)]


def _by_field(shape: ByField) -> Encoder:
    return _either(Either((shape.marked, shape.plain)))


def _either(shape: Either) -> Encoder:
    arms: dict[type, Encoder] = {}
    for alternative in shape.shapes:
        for kind in _types(alternative):
            arms.setdefault(kind, encoder(alternative))
    return _chosen(arms)


def _chosen(arms: dict[type, Encoder]) -> Encoder:
    return lambda value, pad: arms[type(value)](value, pad)


def _types(shape: Shape) -> list[type]:
    """The types of the values that decode from `shape`, where alternatives need telling apart."""
    match shape:
        case Ref(name):
            return _types(DEFINITIONS[name])
        case Either(shapes):
            return [kind for alternative in shapes for kind in _types(alternative)]
        case ByTag(arms) | ByValue(_, arms):
            return [kind for arm in arms.values() for kind in _types(arm)]
        case Wrap(_, inner):
            return _types(inner)
        case Record(kind) | Positional(_, kind):
            return [kind]
        case _:
            return [_PLAIN[type(shape)]]


_PLAIN: dict[type, type] = {Integer: int, Number: float, Text: str, List: tuple}

_defined: dict[str, Encoder] = {}


def _ref(shape: Ref) -> Encoder:
    name = shape.name
    if name not in _defined:
        # Expressions hold expressions: inside the definition the name is looked up when used.
        def late(value: object, pad: str) -> str:
            return _defined[name](value, pad)

        _defined[name] = late
        _defined[name] = encoder(DEFINITIONS[name])
    return _defined[name]


_MAKE: dict[type, Callable[[Any], Encoder]] = {
    Integer: _scalar(str),
    Number: _number,
    Text: _scalar(_quoted),
    Boolean: _scalar(lambda value: "true" if value else "false"),
    Choice: _scalar(_quoted),
    Param: _scalar(lambda value: f'"{value}"'),
    List: _list,
    Positional: _positional,
    Table: _table,
    Record: lambda shape: _object(_members(shape)),
    Wrap: lambda shape: _object(_wrapped(shape)),
    ByTag: _by_tag,
    ByValue: _by_value,
    ByField: _by_field,
    Either: _either,
    Ref: _ref,
}
