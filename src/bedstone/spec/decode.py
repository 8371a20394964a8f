"""From a JSON value to a typed one, by shape; the first misfit stops it.

A decoder is a closure made once for each shape. A `MisfitError` says what was expected where the
misfit is; each container it passes on its way out adds its key or index, so a value that fits pays
nothing for paths.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from bedstone.spec.fault import found, shown
from bedstone.spec.grammar import DEFINITIONS
from bedstone.spec.number import round_f32
from bedstone.spec.param import parse_param
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

Decoder = Callable[[object], Any]


class MisfitError(Exception):
    """A value that does not fit its shape; `trail` holds keys and indices, innermost first."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(rule, message)
        self.rule = rule
        self.message = message
        self.trail: list[str | int] = []


def decoder(shape: Shape) -> Decoder:
    """The function that decodes values of `shape` or raises `MisfitError`."""
    return _MAKE[type(shape)](shape)


def _misfit(expected: str, value: object) -> NoReturn:
    """Refuse a value of the wrong kind or range (P6), or a `null` that is not absence (P10)."""
    rule = "P10" if value is None else "P6"
    raise MisfitError(rule, f"expected {expected}, found {found(value)}")


def _backticked(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


# --- scalars ---------------------------------------------------------------------------------


def _integer(shape: Integer) -> Decoder:
    low, high = shape.low, shape.high
    expected = f"an integer from {low} to {high}"

    def decode(value: object) -> int:
        if type(value) is int and low <= value <= high:
            return value
        _misfit(expected, value)

    return decode


def _number(shape: Number) -> Decoder:
    rounded = round_f32 if shape.single else float
    expected = "a number within float32" if shape.single else "a finite number"

    def decode(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            _misfit("a number", value)
        try:
            number = rounded(value)
        except OverflowError:
            _misfit(expected, value)
        if not math.isfinite(number):
            _misfit(expected, value)
        return number

    return decode


def _text(_shape: Text) -> Decoder:
    def decode(value: object) -> str:
        if type(value) is str:
            return value
        _misfit("a string", value)

    return decode


def _boolean(_shape: Boolean) -> Decoder:
    def decode(value: object) -> bool:
        if value is True or value is False:
            return value
        _misfit("a boolean", value)

    return decode


def _choice(shape: Choice) -> Decoder:
    words = {word: word for word in shape.words}
    expected = f"one of {_backticked(words)}"

    def decode(value: object) -> str:
        if type(value) is not str:
            if type(value) is dict:
                raise MisfitError("P11", f"expected {expected} as a string, found an object")
            _misfit(expected, value)
        word = words.get(value)
        if word is None:
            raise MisfitError(shape.rule, f"expected {expected}, found `{shown(value)}`")
        return word

    return decode


def _param(_shape: Param) -> Decoder:
    def decode(value: object) -> object:
        if type(value) is not str:
            _misfit("a parameter type as a string", value)
        try:
            return parse_param(value)
        except ValueError as error:
            raise MisfitError("P8", str(error)) from None

    return decode


# --- arrays ----------------------------------------------------------------------------------


def _list(shape: List) -> Decoder:
    item, length = decoder(shape.item), shape.length
    expected = "an array" if length is None else f"an array of {length}"

    def decode(value: object) -> tuple[Any, ...]:
        if type(value) is not list or (length is not None and len(value) != length):
            _misfit(expected, value)
        items = []
        try:
            for element in value:
                items.append(item(element))
        except MisfitError as misfit:
            misfit.trail.append(len(items))
            raise
        return tuple(items)

    return decode


def _positional(shape: Positional) -> Decoder:
    decoders = tuple(decoder(item) for item in shape.items)
    expected = f"an array of {len(decoders)}"

    def decode(value: object) -> object:
        if type(value) is not list or len(value) != len(decoders):
            _misfit(expected, value)
        items: list[Any] = []
        try:
            for item, element in zip(decoders, value, strict=True):
                items.append(item(element))
        except MisfitError as misfit:
            misfit.trail.append(len(items))
            raise
        return tuple(items) if shape.type is tuple else shape.type(*items)

    return decode


# --- objects ---------------------------------------------------------------------------------


def _table(shape: Table) -> Decoder:
    item = decoder(shape.item)

    def decode(value: object) -> dict[str, Any]:
        if type(value) is not dict:
            _misfit("an object", value)
        table = {}
        for name in sorted(value):
            try:
                table[name] = item(value[name])
            except MisfitError as misfit:
                misfit.trail.append(name)
                raise
        return table

    return decode


def _record(shape: Record) -> Decoder:
    rows = {row.name: (row.attribute, decoder(row.shape), row.nullable) for row in shape.rows}
    names = _backticked(rows)
    required = frozenset(row.attribute for row in shape.rows if row.required)
    title = shape.type.__name__
    make = shape.type

    def decode(value: object) -> object:
        if type(value) is not dict:
            _refuse_record(title, value)
        members = {}
        for name, member in value.items():
            row = rows.get(name)
            if row is None:
                raise MisfitError("P4", f"unknown field `{shown(name)}`: expected one of {names}")
            attribute, decode_member, nullable = row
            if member is None and nullable:
                continue
            try:
                members[attribute] = decode_member(member)
            except MisfitError as misfit:
                misfit.trail.append(name)
                raise
        if not required <= members.keys():
            raise _missing(shape.rows, members)
        return make(**members)

    return decode if shape.flat is None else _flattened(shape, shape.flat)


def _flattened(shape: Record, flat: Row) -> Decoder:
    """A record that shares its object with the record in its `flat` row."""
    own = {row.name: row for row in shape.rows}
    decoders = {row.name: decoder(row.shape) for row in shape.rows}
    rest = decoder(flat.shape)

    def decode(value: object) -> object:
        if type(value) is not dict:
            _refuse_record(shape.type.__name__, value)
        members = {}
        for name, row in own.items():
            member = value.get(name)
            if name not in value or (member is None and row.nullable):
                continue
            try:
                members[row.attribute] = decoders[name](member)
            except MisfitError as misfit:
                misfit.trail.append(name)
                raise
        members[flat.attribute] = rest({k: v for k, v in value.items() if k not in own})
        if any(row.required and row.attribute not in members for row in shape.rows):
            raise _missing(shape.rows, members)
        return shape.type(**members)

    return decode


def _refuse_record(title: str, value: object) -> NoReturn:
    if type(value) is list:
        raise MisfitError("P11", f"expected `{title}` as an object, found an array of {len(value)}")
    _misfit(f"`{title}` as an object", value)


def _missing(rows: Iterable[Row], members: dict[str, Any]) -> MisfitError:
    missing = [row.name for row in rows if row.required and row.attribute not in members]
    return MisfitError("P5", f"missing field {_backticked(missing)}")


def _wrap(shape: Wrap) -> Decoder:
    tag, inner = shape.tag, decoder(shape.shape)

    def decode(value: object) -> object:
        if type(value) is not dict or tag not in value:
            _misfit(f"an object with `{tag}`", value)
        for name in value:
            if name != tag:
                raise MisfitError("P4", f"unknown field `{shown(name)}`: expected `{tag}` alone")
        try:
            return inner(value[tag])
        except MisfitError as misfit:
            misfit.trail.append(tag)
            raise

    return decode


def _by_tag(shape: ByTag) -> Decoder:
    arms = {tag: decoder(arm) for tag, arm in shape.arms.items()}
    expected = f"an object with exactly one of {_backticked(arms)}"

    def decode(value: object) -> object:
        if type(value) is not dict:
            raise MisfitError("P9", f"expected {expected}, found {found(value)}")
        tags = [name for name in value if name in arms]
        if len(tags) != 1:
            present = _backticked(shown(name) for name in value) or "none"
            raise MisfitError("P9", f"expected {expected}, found {shown(present)}")
        return arms[tags[0]](value)

    return decode


def _by_value(shape: ByValue) -> Decoder:
    key = shape.key
    arms = {word: decoder(arm) for word, arm in shape.arms.items()}
    word_of = decoder(Choice((tuple(arms),)))

    def decode(value: object) -> object:
        if type(value) is not dict:
            _refuse_record("Shard", value)
        if key not in value:
            raise MisfitError("P5", f"missing field `{key}`")
        try:
            arm = arms[str(word_of(value[key]))]
        except MisfitError as misfit:
            misfit.trail.append(key)
            raise
        return arm({name: member for name, member in value.items() if name != key})

    return decode


def _by_field(shape: ByField) -> Decoder:
    marks, marked, plain = shape.marks, decoder(shape.marked), decoder(shape.plain)

    def decode(value: object) -> object:
        if type(value) is dict and marks.isdisjoint(value):
            return plain(value)
        return marked(value)

    return decode


# --- alternatives ----------------------------------------------------------------------------


def _either(shape: Either) -> Decoder:
    takers: dict[type, list[Decoder]] = {}
    for alternative in shape.shapes:
        for kind in _kinds(alternative):
            takers.setdefault(kind, []).append(decoder(alternative))
    expected = " or ".join(_KIND_NAMES[kind] for kind in takers if kind is not int)
    if float not in takers:
        expected = " or ".join(_KIND_NAMES[kind] for kind in takers)

    def decode(value: object) -> object:
        fitting = takers.get(type(value))
        if fitting is None:
            rule = "P10" if value is None else "P9"
            raise MisfitError(rule, f"expected {expected}, found {found(value)}")
        for attempt in fitting[:-1]:
            try:
                return attempt(value)
            except MisfitError:
                continue
        return fitting[-1](value)

    return decode


_KIND_NAMES: dict[type, str] = {
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


_KINDS: dict[type, tuple[type, ...]] = {
    Integer: (int,),
    Number: (int, float),
    Text: (str,),
    List: (list,),
    Record: (dict,),
    ByTag: (dict,),
}


def _kinds(shape: Shape) -> tuple[type, ...]:
    """The Python types of the JSON values that an alternative may take."""
    match shape:
        case Ref(name):
            return _kinds(DEFINITIONS[name])
        case Either(shapes):
            return tuple(kind for alternative in shapes for kind in _kinds(alternative))
        case _:
            return _KINDS[type(shape)]


_defined: dict[str, Decoder] = {}


def _ref(shape: Ref) -> Decoder:
    name = shape.name
    if name not in _defined:
        # Expressions hold expressions: inside the definition the name is looked up when used.
        def late(value: object) -> object:
            return _defined[name](value)

        _defined[name] = late
        _defined[name] = decoder(DEFINITIONS[name])
    return _defined[name]


_MAKE: dict[type, Callable[[Any], Decoder]] = {
    Integer: _integer,
    Number: _number,
    Text: _text,
    Boolean: _boolean,
    Choice: _choice,
    Param: _param,
    List: _list,
    Positional: _positional,
    Table: _table,
    Record: _record,
    Wrap: _wrap,
    ByTag: _by_tag,
    ByValue: _by_value,
    ByField: _by_field,
    Either: _either,
    Ref: _ref,
}
