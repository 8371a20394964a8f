"""Named numbers of a manifest: `constants` taken out, its names replaced by their numbers.

The walk follows the grammar. At a place where some alternative is a number, a string that names a
constant becomes the constant; one that names none is an error where no alternative is a string,
and passes (as a var's name) where one is. Booleans, names and `schema_version` are never numbers.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from bedstone.spec.fault import Fault, ParseError, found, pointer, shown
from bedstone.spec.grammar import DEFINITIONS, MANIFEST
from bedstone.spec.shape import (
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

Places = tuple[Shape, ...]
"""The alternatives of one place, none of them a choice between further ones."""


def expand(manifest: dict[str, Any]) -> dict[str, Any]:
    """`manifest` without `constants`, their names replaced by their numbers.

    A `ParseError` of rule C1, C2 or C3 where `constants` is bad, of C7 where a name has no number.
    """
    if "constants" not in manifest:
        return manifest
    members = {name: value for name, value in manifest.items() if name != "constants"}
    constants = _require_constants(manifest["constants"], members.get("vars"))
    if not constants:
        return members
    return {
        name: _expanded(members[name], _child((MANIFEST,), name), constants, (name,))
        for name in sorted(members)
    }


def _require_constants(constants: object, variables: object) -> Mapping[str, int | float]:
    if not isinstance(constants, dict):
        message = f"expected `constants` to be an object, found {found(constants)}"
        raise ParseError(Fault("C1", "/constants", (), message))
    names = variables if isinstance(variables, dict) else {}
    for name in sorted(constants):
        value = constants[name]
        if not name or type(value) not in {int, float}:
            message = (
                f"expected a nonempty name and a number, found `{shown(name)}`: {found(value)}"
            )
            raise _fault("C2", name, message)
        if name in names:
            message = f"constant `{shown(name)}` is also a var: expected another name"
            raise _fault("C3", name, message)
    return constants


def _fault(rule: str, name: str, message: str) -> ParseError:
    return ParseError(Fault(rule, pointer(("constants", name)), (f"constant {name}",), message))


def _expanded(
    value: object,
    places: Places,
    constants: Mapping[str, int | float],
    trail: tuple[str | int, ...],
) -> object:
    if not places:
        return value
    match value:
        case str():
            return _number(value, places, constants, trail)
        case dict():
            return {
                name: _expanded(value[name], _child(places, name), constants, (*trail, name))
                for name in sorted(value)
            }
        case list():
            return [
                _expanded(item, _item(places, index), constants, (*trail, index))
                for index, item in enumerate(value)
            ]
        case _:
            return value


def _number(
    name: str,
    places: Places,
    constants: Mapping[str, int | float],
    trail: tuple[str | int, ...],
) -> int | float | str:
    if not any(_numeric(place) for place in places):
        return name
    if name in constants:
        return constants[name]
    if any(isinstance(place, (Text, Choice, Param)) for place in places):
        return name
    message = f"undefined constant `{shown(name)}`: expected a number or a constant's name"
    raise ParseError(Fault("C7", pointer(trail), (f"constant {name}",), message))


def _numeric(place: Shape) -> bool:
    return isinstance(place, Number) or (isinstance(place, Integer) and not place.literal)


# --- where a key or an index leads -----------------------------------------------------------


def _child(places: Places, name: str) -> Places:
    members = _members(places)
    return members.get(name, members.get(None, ()))


@cache
def _members(places: Places) -> dict[str | None, Places]:
    """The places under each key; under `None` those of a table's names."""
    members: dict[str | None, Places] = {}
    for place in places:
        for name, shape in _fields(place):
            members[name] = (*members.get(name, ()), *_places(shape))
    return members


def _item(places: Places, index: int) -> Places:
    elements = _elements(places)
    return elements[min(index, len(elements) - 1)]


@cache
def _elements(places: Places) -> tuple[Places, ...]:
    """The places at each index; the last are those of every later one."""
    longest = max((len(p.items) for p in places if isinstance(p, Positional)), default=0)
    return tuple(
        tuple(leaf for place in places for leaf in _items(place, index))
        for index in range(longest + 1)
    )


def _fields(place: Shape) -> list[tuple[str | None, Shape]]:
    match place:
        case Table(item):
            return [(None, item)]
        case Wrap(tag, shape):
            return [(tag, shape)]
        case Record(_, rows, flat):
            own: list[tuple[str | None, Shape]] = [(row.name, row.shape) for row in rows]
            inner = _places(flat.shape) if flat else ()
            return own + [member for leaf in inner for member in _fields(leaf)]
        case _:
            return []


def _items(place: Shape, index: int) -> Places:
    match place:
        case List(item):
            return _places(item)
        case Positional(items):
            return _places(items[index]) if index < len(items) else ()
        case _:
            return ()


@cache
def _places(shape: Shape) -> Places:
    match shape:
        case Ref(name):
            return _places(DEFINITIONS[name])
        case Either(shapes):
            return tuple(leaf for alternative in shapes for leaf in _places(alternative))
        case ByTag(arms) | ByValue(_, arms):
            return tuple(arms.values())
        case ByField(_, marked, plain):
            return _places(marked) + _places(plain)
        case _:
            return (shape,)
