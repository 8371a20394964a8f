"""Inputs on their way to the device: written on the host, copied in one go before a replay.

A write goes to a mirror of the inputs' memory and is remembered as a range of bytes. Before the
next replay those ranges, joined where little lies between them, are copied through page-locked
blocks, so that the host can write on while the copy is under way.
"""

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.cuda.driver import Driver
from bedstone.runtime.device import Places, RowCopy

Range = tuple[int, int]
"""From the first byte to the one after the last."""

_BLOCKS = 2
_JOINED_GAP = 16384


def joined(ranges: Iterable[Range], gap: int = _JOINED_GAP) -> list[Range]:
    """The ranges in order, those less than `gap` bytes apart made one.

    A copy costs more than some bytes that are there already.
    """
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start - found[-1][1] < gap:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    """Page-locked memory as large as the inputs, and the mark behind its last copy."""

    address: int
    event: int
    view: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Box:
    """`rows` times `width` bytes, `pitch` apart, the first from `start` on."""

    start: int
    pitch: int
    rows: int
    width: int


class Staging:
    """The inputs' memory at device `address`, and what has been written and not yet copied."""

    def __init__(self, driver: Driver, address: int, nbytes: int) -> None:
        self._driver = driver
        self._address = address
        self._mirror = np.zeros(nbytes, np.uint8)
        self._mirror_address = self._mirror.ctypes.data
        self._written: list[Range] = []
        self._boxes: list[_Box] = []
        self._blocks = tuple(_block(driver, nbytes) for _ in range(_BLOCKS))
        self._next = 0

    def holds(self, address: int) -> bool:
        """Whether an address is one of the inputs'."""
        return self._address <= address < self._address + self._mirror.size

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Remember bytes [n] that go to `address`."""
        start = address - self._address
        end = start + data.size
        self._mirror[start:end] = data
        if data.size:
            self._written.append((start, end))

    def scatter(self, address: int, places: Places, width: int, data: NDArray[np.generic]) -> None:
        """Remember elements [n] that go to those places of an array of their type.

        They are scattered over rows of `width` elements: columns between the first and the last of
        them are copied, in one go, where a copy for each would take a hundred times as long.
        """
        flat, top, bottom, left, right = places
        start, size = address - self._address, data.itemsize
        end = start + (bottom * width + right + 1) * size
        self._mirror[start:end].view(data.dtype)[flat] = data
        first = start + (top * width + left) * size
        self._boxes.append(_Box(first, width * size, bottom + 1 - top, (right + 1 - left) * size))

    def clear(self, address: int, nbytes: int) -> None:
        """Remember zeros that go to `address`."""
        self.write(address, np.zeros(nbytes, np.uint8))

    def flush(self, stream: int) -> None:
        """Enqueue copies of everything written since the last time."""
        if not self._written and not self._boxes:
            return
        block = self._blocks[self._next]
        self._next = (self._next + 1) % _BLOCKS
        self._driver.wait(block.event)
        for start, end in joined(self._written):
            ctypes.memmove(block.address + start, self._mirror_address + start, end - start)
            self._driver.copy_in(self._address + start, block.address + start, end - start, stream)
        for box in self._boxes:
            self._copy_box(box, block, stream)
        self._driver.record(block.event, stream)
        self._written.clear()
        self._boxes.clear()

    def _copy_box(self, box: "_Box", block: _Block, stream: int) -> None:
        form, pitch = (box.rows, box.width), (box.pitch, 1)
        source = np.ndarray(form, np.uint8, self._mirror, box.start, pitch)
        np.copyto(np.ndarray(form, np.uint8, block.view, box.start, pitch), source)
        at, target = block.address + box.start, self._address + box.start
        self._driver.copy_rows(RowCopy(at, box.pitch, target, box.pitch, *form), stream)

    def close(self) -> None:
        """Let the blocks go."""
        for block in self._blocks:
            self._driver.end_event(block.event)
            self._driver.free_host(block.address)


def _block(driver: Driver, nbytes: int) -> _Block:
    address = driver.alloc_host(nbytes)
    view = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    return _Block(address, driver.event(), view)


class Staged:
    """An input of what is staged."""

    __slots__ = ("_address", "_staging")

    def __init__(self, staging: Staging, address: int) -> None:
        self._staging, self._address = staging, address

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """Remember bytes [n] until the next replay."""
        self._staging.write(self._address + offset, data)

    def scatter(self, places: Places, width: int, data: NDArray[np.generic]) -> None:
        """Remember elements [n] until the next replay."""
        self._staging.scatter(self._address, places, width, data)


class Unstaged:
    """A buffer that is written at once."""

    __slots__ = ("_address", "_write")

    def __init__(self, write: Callable[[int, NDArray[np.uint8]], None], address: int) -> None:
        self._write, self._address = write, address

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes [n]."""
        self._write(self._address + offset, data)

    def scatter(self, places: Places, _width: int, data: NDArray[np.generic]) -> None:
        """Copy elements [n] one by one."""
        for place, element in zip(places.flat.tolist(), data, strict=True):
            self.write(place * data.itemsize, element.reshape(1).view(np.uint8))
