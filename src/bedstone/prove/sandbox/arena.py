"""Memory that the parent and the child share: where each input and output of each slot lies."""

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bedstone.prove.tensors import as_bytes, nbytes, poison_byte, view
from bedstone.spec.axes import Shape

_ALIGN = 256
_PAD = 4096
"""Bytes between two tensors, so that one written past its end damages no other and is noticed."""
_PAD_BYTE = 0xA5


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in the arena."""

    name: str
    dtype: str
    shape: Shape
    offset: int

    def json(self) -> list[Any]:
        """As a message carries it."""
        return [self.name, self.dtype, list(self.shape), self.offset]

    @staticmethod
    def of(value: Sequence[Any]) -> "Place":
        """From what a message carries."""
        name, dtype, shape, offset = value
        return Place(name, dtype, tuple(shape), offset)


@dataclass(frozen=True, slots=True)
class Slot:
    """The inputs and outputs of one call; an output written over an input has its place."""

    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


def plan_slots(
    inputs: Mapping[str, tuple[str, Shape]], outputs: Mapping[str, tuple[str, Shape]], count: int
) -> tuple[tuple[Slot, ...], int]:
    """Places for `count` slots.

    Args:
        inputs: Element type and shape by input that is a tensor.
        outputs: Element type and shape by output.
        count: How many calls can be laid out side by side.

    Returns:
        The slots and the bytes they take together.
    """
    end = 0
    slots = []
    for _ in range(count):
        halves = []
        for tensors in (inputs, outputs):
            places = []
            for name, (dtype, shape) in tensors.items():
                places.append(Place(name, dtype, shape, end))
                end += -(-(nbytes(dtype, shape) + _PAD) // _ALIGN) * _ALIGN
            halves.append(tuple(places))
        slots.append(Slot(*halves))
    return tuple(slots), max(end, _ALIGN)


class Arena:
    """A mapping of the shared memory behind a file descriptor, `size` bytes long."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._memory = mmap.mmap(descriptor, size)

    def tensor(self, place: Place) -> torch.Tensor:
        """The tensor at a place, sharing its memory."""
        return view(self._memory, place.offset, place.dtype, place.shape)

    def write(self, place: Place, values: torch.Tensor) -> None:
        """Copy `values` there."""
        as_bytes(self.tensor(place)).copy_(as_bytes(values))
        self._behind(place).fill_(_PAD_BYTE)

    def poison(self, place: Place) -> None:
        """Fill a place with what no kernel would write."""
        as_bytes(self.tensor(place)).fill_(poison_byte(place.dtype))
        self._behind(place).fill_(_PAD_BYTE)

    def overrun(self, place: Place) -> bool:
        """Whether anybody wrote behind a place since it was filled."""
        return bool((self._behind(place) != _PAD_BYTE).any())

    def _behind(self, place: Place) -> torch.Tensor:
        return view(self._memory, place.offset + nbytes(place.dtype, place.shape), "uint8", (_PAD,))

    def read(self, place: Place) -> torch.Tensor:
        """A copy of what lies there now, which nobody else can change."""
        return self.tensor(place).clone()


def shared_memory(size: int) -> int:
    """The descriptor of new memory of `size` bytes that a child can map too."""
    descriptor = os.memfd_create("bedstone-arena", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, size)
    return descriptor
