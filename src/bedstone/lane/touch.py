"""What a launch touches: derived from the types of its fields, as its operands are."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import cast

from bedstone.lane.launch import Form, Launch, Read, ToBuf, ToRows, ToScratch, Version

_Leaf = Read | Version | ToBuf | ToRows | ToScratch


@dataclass(frozen=True, slots=True)
class Touch:
    """A launch reads or writes a form of a tensor; a table is touched by a version's name."""

    tensor: str
    form: Form
    write: bool


def touches(launch: Launch) -> tuple[Touch, ...]:
    """What `launch` touches, operands in the order of its fields."""
    return tuple(touch for leaf in _leaves(launch) for touch in _touches(leaf))


def reads_of(launch: Launch) -> tuple[Read, ...]:
    """The tensors `launch` reads, tables aside."""
    return tuple(leaf for leaf in _leaves(launch) if isinstance(leaf, Read))


def _leaves(value: object) -> Iterator[_Leaf]:
    if isinstance(value, _Leaf):
        yield value
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from _leaves(item)
    elif is_dataclass(value):
        for f in fields(value):
            yield from _leaves(getattr(value, f.name))


def _touches(leaf: _Leaf) -> Iterator[Touch]:
    match leaf:
        case Read(tensor, form):
            yield Touch(tensor, form, write=False)
        case Version(_, name):
            yield Touch(name, "f32", write=False)
        case ToRows(_, _, version):
            yield Touch(version, "f32", write=True)
        case ToBuf(tensor, f32, quant) | ToScratch(_, _, tensor, f32, quant):
            if f32:
                yield Touch(tensor, "f32", write=True)
            if quant:
                yield Touch(tensor, "quant", write=True)
