"""Values of named fields that never change: what a frozen dataclass is, made where imports are few.

A class of `dataclasses` is written as Python source and compiled at each import, some 400 µs; one
of `msgspec` is made in C in 12 µs, and its values in a third of the time. A cold process imports
some 150 before its first token. `dataclasses.replace`, `fields` and `asdict` take both.
"""

import dataclasses
from typing import Any, dataclass_transform

from msgspec import NODEFAULT, Struct, field
from msgspec.structs import fields


class _Fields:
    """What `dataclasses` looks for in a class of its own, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[type, dict[str, dataclasses.Field[Any]]] = {}

    def __get__(self, _value: object, owner: type[Struct]) -> dict[str, dataclasses.Field[Any]]:
        if owner not in self._made:
            self._made[owner] = _fields(owner)
        return self._made[owner]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(Struct, frozen=True):
    """A value: two with equal fields are equal, none can be assigned to."""

    __dataclass_fields__ = _Fields()


def _fields(owner: type[Struct]) -> dict[str, dataclasses.Field[Any]]:
    made = dataclasses.make_dataclass(
        owner.__name__, [(each.name, each.type, _default(each)) for each in fields(owner)]
    )
    return {each.name: each for each in dataclasses.fields(made)}


def _default(each: Any) -> Any:  # noqa: ANN401 - msgspec says no more of a field
    if each.default_factory is not NODEFAULT:
        return dataclasses.field(default_factory=each.default_factory)
    return (
        dataclasses.field()
        if each.default is NODEFAULT
        else dataclasses.field(default=each.default)
    )
