"""Where the outputs of a call go: arrays of the caller's, made anew for each call."""

import ctypes
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CapacityError
from bedstone.runtime.device import Tap
from bedstone.runtime.memory import BUFFER_ALIGN, rounded_up
from bedstone.runtime.ports import Port


class Sinks:
    """An array [times, ...] for each of some outputs, all in one piece of memory."""

    __slots__ = ("_nbytes", "_parts", "_what")

    def __init__(self, ports: Sequence[Port], times: int) -> None:
        sizes = [port.memory.nbytes for port in ports]
        ends = accumulate((rounded_up(times * size, BUFFER_ALIGN) for size in sizes), initial=0)
        *starts, self._nbytes = ends
        self._parts = [
            (port.dtype, (times, *port.shape), start, port.memory.address, size)
            for port, start, size in zip(ports, starts, sizes, strict=True)
        ]
        self._what = f"{times} times {sum(sizes)} bytes"

    def make(self) -> tuple[tuple[NDArray[np.generic], ...], tuple[Tap, ...]]:
        """The arrays, and the taps into them.

        Raises `CapacityError`: the host has no memory for them.
        """
        if not self._parts:
            return (), ()
        try:
            held = np.zeros(self._nbytes, np.uint8)
        except (MemoryError, ValueError, OverflowError) as error:
            raise CapacityError(f"the host has no memory for {self._what}") from error
        # a third of what `ctypes.data` takes
        base = ctypes.addressof(ctypes.c_char.from_buffer(held.data))
        outputs = [np.ndarray(shape, dtype, held, at) for dtype, shape, at, _, _ in self._parts]
        taps = [Tap(source, base + at, nbytes) for _, _, at, source, nbytes in self._parts]
        return tuple(outputs), tuple(taps)
