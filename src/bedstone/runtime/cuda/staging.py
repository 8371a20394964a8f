"""Inputs on their way to the device: written on the host, copied in one go before a replay.

A write goes to a mirror of the inputs' memory and is remembered as a range of bytes. Before the
next replay those ranges, joined where little lies between them, are copied through page-locked
blocks, so that the host can write on while the copy is under way.
"""

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.cuda.driver import Driver

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


class Staging:
    """The inputs' memory at device `address`, and what has been written and not yet copied."""

    def __init__(self, driver: Driver, address: int, nbytes: int) -> None:
        self._driver = driver
        self._address = address
        self._mirror = np.zeros(nbytes, np.uint8)
        self._mirror_address = self._mirror.ctypes.data
        self._written: list[Range] = []
        self._blocks = tuple(
            _Block(driver.alloc_host(nbytes), driver.event()) for _ in range(_BLOCKS)
        )
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

    def scatter(self, address: int, places: NDArray[np.intp], data: NDArray[np.generic]) -> None:
        """Remember elements [n] that go to those places of an array of their type."""
        starts, size = places * data.itemsize + (address - self._address), data.itemsize
        end = int(starts.max(initial=0)) + size
        self._mirror[address - self._address : end].view(data.dtype)[places] = data
        self._written += zip(starts.tolist(), (starts + size).tolist(), strict=True)

    def clear(self, address: int, nbytes: int) -> None:
        """Remember zeros that go to `address`."""
        self.write(address, np.zeros(nbytes, np.uint8))

    def flush(self, stream: int) -> None:
        """Enqueue copies of everything written since the last time."""
        if not self._written:
            return
        block = self._blocks[self._next]
        self._next = (self._next + 1) % _BLOCKS
        self._driver.wait(block.event)
        for start, end in joined(self._written):
            ctypes.memmove(block.address + start, self._mirror_address + start, end - start)
            self._driver.copy_in(self._address + start, block.address + start, end - start, stream)
        self._driver.record(block.event, stream)
        self._written.clear()

    def close(self) -> None:
        """Let the blocks go."""
        for block in self._blocks:
            self._driver.end_event(block.event)
            self._driver.free_host(block.address)
