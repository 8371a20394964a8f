"""What a launch touches: derived from the types of its fields, as its operands are."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast, get_args

from bedstone.lane.launch import (
    Carry,
    Form,
    Launch,
    Read,
    Sequences,
    ToBuf,
    ToEach,
    ToRows,
    ToScratch,
    Version,
)

Leaf = Read | Version | Carry | ToBuf | ToRows | ToScratch | ToEach
T = TypeVar("T")

_LEAVES = frozenset(get_args(Leaf))
_FIELDS: dict[type, tuple[str, ...]] = {}
_PLAIN = frozenset({str, int, float, bool, type(None)})
"""What most fields hold, none of which names a tensor to a launch."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A launch reads or writes a form of a tensor; a table is touched by a version's name."""

    tensor: str
    form: Form
    write: bool


def touches(launch: Launch) -> tuple[Touch, ...]:
    """What `launch` touches, operands in the order of its fields."""
    return tuple(touch for leaf in leaves(launch) for touch in _touches(leaf))


def reads_of(launch: Launch) -> tuple[Read, ...]:
    """The tensors `launch` reads, tables aside."""
    return tuple(leaf for leaf in leaves(launch) if isinstance(leaf, Read))


def places_of(launch: Launch) -> tuple[ToBuf | ToScratch, ...]:
    """The buffers `launch` writes."""
    return tuple(leaf for leaf in leaves(launch) if isinstance(leaf, ToBuf | ToScratch))


def leaves(value: object) -> list[Leaf]:
    """What the fields of a launch name, apart from constants and numbers."""
    found: list[Leaf] = []
    _gather(value, found)
    return found


def _gather(value: object, found: list[Leaf]) -> None:
    """Walk the fields of every launch of a plan many times over: hence by type, not by trying."""
    if type(value) in _LEAVES:
        found.append(cast("Leaf", value))
        return
    for item in _items(value):
        if type(item) not in _PLAIN:
            _gather(item, found)


def _items(value: object) -> Iterable[object]:
    if isinstance(value, tuple):
        return cast("tuple[object, ...]", value)
    if isinstance(value, Sequences):
        return value.members
    return [getattr(value, name) for name in _fields(type(value))]


def rewrite(value: T, swap: Callable[[Leaf], Leaf]) -> T:
    """A launch (or a piece of one) with each leaf replaced as `swap` says."""
    return cast("T", _rewritten(value, swap))


def _rewritten(value: object, swap: Callable[[Leaf], Leaf]) -> object:
    if type(value) in _PLAIN:
        return value
    if type(value) in _LEAVES:
        return swap(cast("Leaf", value))
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return tuple(_rewritten(item, swap) for item in items)
    changed: dict[str, object] = {}
    for name in _fields(type(value)):
        old = getattr(value, name)
        new = _rewritten(old, swap)
        if new is not old:
            changed[name] = new
    return replace(cast("Any", value), **changed) if changed else value


def _fields(kind: type) -> tuple[str, ...]:
    """The names of a dataclass's fields, found once a class; what is none has no fields."""
    names = _FIELDS.get(kind)
    if names is None:
        names = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()
        _FIELDS[kind] = names
    return names


def _touches(leaf: Leaf) -> Iterator[Touch]:
    match leaf:
        case Read(tensor, form):
            yield Touch(tensor, form, write=False)
        case Version(_, name):
            yield Touch(name, "f32", write=False)
        case Carry(_, before, after):
            yield Touch(before, "f32", write=False)
            yield Touch(after, "f32", write=True)
        case ToRows(_, _, version):
            yield Touch(version, "f32", write=True)
        case ToEach(rows):
            yield from (Touch(row.version, "f32", write=True) for row in rows)
        case ToBuf(tensor, f32, quant) | ToScratch(_, _, tensor, f32, quant):
            if f32:
                yield Touch(tensor, "f32", write=True)
            if quant:
                yield Touch(tensor, "quant", write=True)
