"""Which tensors an op reads and makes, and the op under other names: derived from its field types.

A field counts when its type is `Ref` or `Out`, or holds one: optional, in a tuple, in a union or in
a nested dataclass. So a new op class, wherever it is defined, needs no second table.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from bedstone.graph.step import Conv, Delta, Out, Ref, Set

Swap = Callable[[str], str]
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class _Walk:
    """How to find names of one kind in a value of one type, and how to write them back."""

    gather: Callable[[Any], tuple[str, ...]]
    rewrite: Callable[[Any, Swap], Any]


_LEAF = _Walk(lambda name: (name,), lambda name, swap: swap(name))
_CLASS_WALKS: dict[tuple[type, object], _Walk | None] = {}


def reads(op: object) -> tuple[Ref, ...]:
    """The tensors `op` reads, in field order; one read twice is named twice."""
    walk = _class_walk(type(op), Ref)
    return cast("tuple[Ref, ...]", walk.gather(op)) if walk else ()


def writes(op: object) -> tuple[Out, ...]:
    """The tensors `op` makes, in field order."""
    walk = _class_walk(type(op), Out)
    return cast("tuple[Out, ...]", walk.gather(op)) if walk else ()


def table_write(op: object) -> tuple[Ref, Out] | None:
    """The table version `op` writes to in place and the version it makes; None for other ops."""
    match op:
        case Set():
            return op.table, op.out
        case Conv():
            return op.ring, op.version
        case Delta():
            return op.state, op.version
        case _:
            return None


def rename(op: T, mapping: Mapping[str, str]) -> T:
    """`op` with every name it reads or makes replaced as `mapping` says; other names stay."""
    for kind in (Ref, Out):
        walk = _class_walk(type(op), kind)
        if walk is not None:
            op = walk.rewrite(op, lambda name: mapping.get(name, name))
    return op


def _class_walk(cls: type, kind: object) -> _Walk | None:
    """The walk of a dataclass, made once; None where no field of it holds such a name."""
    key = (cls, kind)
    if key not in _CLASS_WALKS:
        _CLASS_WALKS[key] = _fields_walk(cls, kind)
    return _CLASS_WALKS[key]


def _fields_walk(cls: type, kind: object) -> _Walk | None:
    hints = get_type_hints(cls)
    found = [(f.name, _walk(hints[f.name], kind)) for f in dataclasses.fields(cls)]
    walks = [(name, walk) for name, walk in found if walk is not None]
    if not walks:
        return None
    return _Walk(
        lambda value: tuple(n for name, walk in walks for n in walk.gather(getattr(value, name))),
        lambda value, swap: dataclasses.replace(
            value, **{name: walk.rewrite(getattr(value, name), swap) for name, walk in walks}
        ),
    )


def _walk(hint: object, kind: object) -> _Walk | None:
    """The walk of one field type, or None where it cannot hold a name of this kind."""
    if hint is kind:
        return _LEAF
    if get_origin(hint) is tuple:
        return _tuple_walk(get_args(hint), kind)
    if get_origin(hint) in (Union, UnionType):
        return _union_walk(get_args(hint), kind)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _class_walk(hint, kind)
    return None


def _tuple_walk(args: tuple[object, ...], kind: object) -> _Walk | None:
    """A tuple of one repeated type, or of fixed members."""
    repeated = len(args) == 2 and args[1] is Ellipsis
    members = [_walk(arg, kind) for arg in (args[:1] if repeated else args)]
    if not any(members):
        return None

    def paired(value: tuple[Any, ...]) -> list[tuple[Any, _Walk | None]]:
        walks = members * len(value) if repeated else members
        return list(zip(value, walks, strict=True))

    return _Walk(
        lambda value: tuple(n for v, walk in paired(value) if walk for n in walk.gather(v)),
        lambda value, swap: tuple(
            walk.rewrite(v, swap) if walk else v for v, walk in paired(value)
        ),
    )


def _union_walk(args: tuple[object, ...], kind: object) -> _Walk | None:
    """A value of one of several types: its own type at run time picks the walk."""
    by_type = {_runtime_type(arg): walk for arg in args if (walk := _walk(arg, kind)) is not None}
    if not by_type:
        return None
    nameless = _Walk(lambda _: (), lambda value, _: value)

    def walk_of(value: object) -> _Walk:
        return by_type.get(type(value), nameless)

    return _Walk(
        lambda value: walk_of(value).gather(value),
        lambda value, swap: walk_of(value).rewrite(value, swap),
    )


def _runtime_type(hint: object) -> object:
    """The class a value of this field type has when it holds a name."""
    return str if hint is Ref or hint is Out else get_origin(hint) or hint
