"""From a JSON value to a typed one, by shape; the first misfit stops it.

A decoder is a closure made once for each shape. A `MisfitError` says what was expected where the
misfit is; each container it passes on its way out adds its key or index, so a value that fits pays
nothing for paths.
"""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from bedstone.spec import scalar
from bedstone.spec.fault import found, shown
from bedstone.spec.grammar import DEFINITIONS
from bedstone.spec.misfit import MisfitError, backticked, misfit
from bedstone.spec.scalar import Decoder
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
    Shape,
    Table,
    Text,
    Wrap,
)


def decoder(shape: Shape) -> Decoder:
    """The function that decodes values of `shape` or raises `MisfitError`."""
    return _MAKE[type(shape)](shape)


# --- arrays ----------------------------------------------------------------------------------


def _list(shape: List) -> Decoder:
    item, length = decoder(shape.item), shape.length
    expected = "an array" if length is None else f"an array of {length}"

    def decode(value: object) -> tuple[Any, ...]:
        if type(value) is not list or (length is not None and len(value) != length):
            misfit(expected, value)
        items = []
        try:
            for element in value:
                items.append(item(element))
        except MisfitError as error:
            error.trail.append(len(items))
            raise
        return tuple(items)

    return decode


def _positional(shape: Positional) -> Decoder:
    decoders = tuple(decoder(item) for item in shape.items)
    expected = f"an array of {len(decoders)}"

    def decode(value: object) -> object:
        if type(value) is not list or len(value) != len(decoders):
            misfit(expected, value)
        items: list[Any] = []
        try:
            for item, element in zip(decoders, value, strict=True):
                items.append(item(element))
        except MisfitError as error:
            error.trail.append(len(items))
            raise
        return tuple(items) if shape.kind is tuple else shape.kind(*items)

    return decode


# --- objects ---------------------------------------------------------------------------------


def _table(shape: Table) -> Decoder:
    item = decoder(shape.item)

    def decode(value: object) -> dict[str, Any]:
        if type(value) is not dict:
            misfit("an object", value)
        table = {}
        for name in sorted(value):
            try:
                table[name] = item(value[name])
            except MisfitError as error:
                error.trail.append(name)
                raise
        return table

    return decode


def _record(shape: Record) -> Decoder:
    rows = {row.name: (row.attribute, decoder(row.shape), row.nullable) for row in shape.rows}
    required = frozenset(row.attribute for row in shape.rows if row.required)
    title = shape.kind.__name__
    rest = None if shape.flat is None else (shape.flat.attribute, decoder(shape.flat.shape))

    def decode(value: object) -> object:
        if type(value) is not dict:
            _refuse_record(title, value)
        members = {}
        unknown = {}
        for name, member in value.items():
            row = rows.get(name)
            if row is None:
                unknown[name] = member
                continue
            attribute, decode_member, nullable = row
            if member is None and nullable:
                continue
            try:
                members[attribute] = decode_member(member)
            except MisfitError as error:
                error.trail.append(name)
                raise
        if rest is not None:
            members[rest[0]] = rest[1](unknown)
        elif unknown:
            _refuse_field(next(iter(unknown)), rows)
        if not required <= members.keys():
            _refuse_absence(shape, members)
        return shape.kind(**members)

    return decode


def _refuse_record(title: str, value: object) -> NoReturn:
    if type(value) is list:
        raise MisfitError("P11", f"expected `{title}` as an object, found an array of {len(value)}")
    misfit(f"`{title}` as an object", value)


def _refuse_field(name: str, known: Iterable[str]) -> NoReturn:
    choice = backticked(known)
    raise MisfitError("P4", f"expected only the fields {choice}, found `{shown(name)}`")


def _refuse_absence(shape: Record, members: dict[str, Any]) -> NoReturn:
    missing = [row.name for row in shape.rows if row.required and row.attribute not in members]
    raise MisfitError("P5", f"expected a field {backticked(missing)}, found none")


def _wrap(shape: Wrap) -> Decoder:
    tag, inner = shape.tag, decoder(shape.shape)

    def decode(value: object) -> object:
        if type(value) is not dict or tag not in value:
            misfit(f"an object with `{tag}`", value)
        if len(value) > 1:
            _refuse_field(next(name for name in value if name != tag), (tag,))
        try:
            return inner(value[tag])
        except MisfitError as error:
            error.trail.append(tag)
            raise

    return decode


def _by_tag(shape: ByTag) -> Decoder:
    arms = {tag: decoder(arm) for tag, arm in shape.arms.items()}
    expected = f"an object with exactly one of {backticked(arms)}"

    def decode(value: object) -> object:
        if type(value) is not dict:
            raise MisfitError("P9", f"expected {expected}, found {found(value)}")
        tags = [name for name in value if name in arms]
        if len(tags) != 1:
            present = backticked(shown(name) for name in list(value)[:4]) or "none"
            raise MisfitError("P9", f"expected {expected}, found {present}")
        return arms[tags[0]](value)

    return decode


def _by_value(shape: ByValue) -> Decoder:
    key = shape.key
    arms = {word: decoder(arm) for word, arm in shape.arms.items()}
    title = "` or `".join(arm.kind.__name__ for arm in shape.arms.values())
    word_of = scalar.choice(Choice((tuple(arms),)))

    def decode(value: object) -> object:
        if type(value) is not dict:
            _refuse_record(title, value)
        if key not in value:
            raise MisfitError("P5", f"expected a field `{key}`, found none")
        try:
            arm = arms[str(word_of(value[key]))]
        except MisfitError as error:
            error.trail.append(key)
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
    Integer: scalar.integer,
    Number: scalar.number,
    Text: scalar.text,
    Boolean: scalar.boolean,
    Choice: scalar.choice,
    Param: scalar.param,
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
