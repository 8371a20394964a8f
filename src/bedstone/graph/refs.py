"""Which tensors an op reads and makes, and the op under other names: derived from its field types.

A field counts when its type is `Ref` or `Out`, or holds one: optional, in a tuple, in a union or in a
nested dataclass. So a new op class, wherever it is defined, needs no second table.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from bedstone.graph.step import Out, Ref

Swap = Callable[[str], str]
Gather = Callable[[Any], tuple[Any, ...]]
Rewrite = Callable[[Any, Swap], Any]

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class _Walk:
    """How to find names of one kind in a value of one type, and how to write them back."""

    gather: Gather
    rewrite: Rewrite


_LEAF = _Walk(lambda value: (value,), lambda value, swap: swap(value))


def reads(op: object) -> tuple[Ref, ...]:
    """The tensors `op` reads, in field order; one read twice is named twice."""
    return _gather(op, Ref)


def writes(op: object) -> tuple[Out, ...]:
    """The tensors `op` makes, in field order."""
    return _gather(op, Out)


def rename(op: T, mapping: Mapping[str, str]) -> T:
    """`op` with every name it reads or makes replaced as `mapping` says; other names stay."""
    for kind in (Ref, Out):
        walk = _class_walk(type(op), kind)
        if walk is not None:
            op = walk.rewrite(op, lambda name: mapping.get(name, name))
    return op


def _gather(op: object, kind: object) -> tuple[Any, ...]:
    walk = _class_walk(type(op), kind)
    return () if walk is None else walk.gather(op)


@cache
def _class_walk(cls: type, kind: object) -> _Walk | None:
    """The walk of a dataclass, or None where no field of it holds a name of this kind."""
    hints = get_type_hints(cls)
    found = ((f.name, _walk(hints[f.name], kind)) for f in dataclasses.fields(cls))
    walks = [(name, walk) for name, walk in found if walk is not None]
    if not walks:
        return None

    def gather(value: Any) -> tuple[Any, ...]:
        return tuple(n for name, walk in walks for n in walk.gather(getattr(value, name)))

    def rewrite(value: Any, swap: Swap) -> Any:
        new = {name: walk.rewrite(getattr(value, name), swap) for name, walk in walks}
        return dataclasses.replace(value, **new)

    return _Walk(gather, rewrite)


def _walk(hint: Any, kind: object) -> _Walk | None:
    """The walk of one field type, or None where it cannot hold a name of this kind."""
    if hint is kind:
        return _LEAF
    if get_origin(hint) is tuple:
        return _tuple_walk(get_args(hint), kind)
    if get_origin(hint) in (Union, types.UnionType):
        return _union_walk(get_args(hint), kind)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _class_walk(hint, kind)
    return None


def _tuple_walk(args: tuple[Any, ...], kind: object) -> _Walk | None:
    """A tuple of one repeated type, or of fixed members."""
    repeated = len(args) == 2 and args[1] is Ellipsis
    members = [_walk(arg, kind) for arg in args[: 1 if repeated else None]]
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


def _union_walk(args: tuple[Any, ...], kind: object) -> _Walk | None:
    """A value of one of several types: its own type at run time picks the walk."""
    by_type = {_runtime_type(arg): walk for arg in args if (walk := _walk(arg, kind)) is not None}
    if not by_type:
        return None

    def gather(value: Any) -> tuple[Any, ...]:
        walk = by_type.get(type(value))
        return () if walk is None else walk.gather(value)

    def rewrite(value: Any, swap: Swap) -> Any:
        walk = by_type.get(type(value))
        return value if walk is None else walk.rewrite(value, swap)

    return _Walk(gather, rewrite)


def _runtime_type(hint: Any) -> type:
    if hint is Ref or hint is Out:
        return str
    origin = get_origin(hint)
    return origin if isinstance(origin, type) else hint
