"""A session looked into: its programs run some calls at a time, its memory read and set.

Whoever steps has the session for itself: nothing here waits for a run that another thread began.
"""

import ctypes
import zlib
from collections.abc import Iterator, Mapping
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.runtime.device import Memory
from bedstone.runtime.executor import Executor
from bedstone.runtime.lower import Region
from bedstone.spec.manifest import BufferKind

_FIXED: tuple[BufferKind, ...] = ("weight", "source", "peer")
_STEPS = ("cpu",)


class Stepper:
    """Runs stretches of a session's programs.

    `regions` are all that a step may change, and its inputs: states, scratch, and buffers that are
    no weights.

    Raises `CallerError`: the device is one that runs only whole programs.
    """

    def __init__(self, session: Executor) -> None:
        loaded = session.loaded
        if loaded.device.name not in _STEPS:
            raise CallerError(
                f"device `{loaded.device.name}` runs whole programs: expected `{_STEPS[0]}`"
            )
        self.session = session
        self._device, self._programs = loaded.device, loaded.programs
        buffers = session.manifest.buffers
        fixed = {
            region
            for region in loaded.memory
            if region.kind == "buffer" and buffers[region.name].kind in _FIXED
        }
        self.regions: Mapping[Region, Memory] = {
            region: memory for region, memory in loaded.memory.items() if region not in fixed
        }
        self._weights = [loaded.memory[region] for region in sorted(fixed, key=str)]
        self._gaps = list(_gaps(list(self.regions.values())))
        self._first = {name: _first_launches(session, name) for name in loaded.programs}

    def run(
        self, program: str, start: int, stop: int, given: Mapping[str, int], *, times: int = 1
    ) -> None:
        """Run calls [start, stop) of a program under the vars of a whole run, so many times."""
        first = self._first[program]
        capture = self._programs[program].capture(given)
        count = first[stop] - first[start]
        if count:
            self._device.replay(capture.part(first[start], count), times, ()).wait()

    def read(self, region: Region, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        """A copy of bytes [start, stop) of a region, by default of all."""
        memory = self.regions[region]
        end = memory.nbytes if stop is None else min(stop, memory.nbytes)
        return self._device.read(memory.address + start, end - start)

    def view(self, region: Region) -> NDArray[np.uint8]:
        """A region's bytes where they lie: this process's own memory, as long as the session is."""
        memory = self.regions[region]
        there = (ctypes.c_uint8 * memory.nbytes).from_address(memory.address)
        return np.frombuffer(memoryview(there), np.uint8)

    def write(self, region: Region, data: NDArray[np.uint8], start: int = 0) -> None:
        """Set a region's bytes from `start` on; they are the caller's to keep inside."""
        self._device.write(self.regions[region].address + start, np.ascontiguousarray(data))

    def between(self) -> bytes:
        """What lies between the regions, where nothing has any business."""
        return b"".join(self._device.read(at, nbytes).tobytes() for at, nbytes in self._gaps)

    def weights(self) -> int:
        """A checksum of the weights."""
        total = 0
        for memory in self._weights:
            total = zlib.crc32(self._device.read(memory.address, memory.nbytes).data, total)
        return total


def _first_launches(session: Executor, program: str) -> list[int]:
    """The index of each call's first launch, and the end of the last one."""
    manifest = session.manifest
    counts = (len(manifest.ops[c.op].impl.launches) for c in manifest.programs[program].calls)
    return [0, *accumulate(counts)]


def _gaps(memory: list[Memory]) -> Iterator[tuple[int, int]]:
    """Address and bytes of each hole in an allocation that several regions share."""
    for arena in {id(m.owner): m.owner for m in memory if isinstance(m.owner, Memory)}.values():
        held = sorted((m.address, m.nbytes) for m in memory if m.owner is arena)
        ends = [arena.address, *(address + nbytes for address, nbytes in held)]
        starts = [*(address for address, _ in held), arena.address + arena.nbytes]
        yield from (
            (end, start - end) for end, start in zip(ends, starts, strict=True) if start > end
        )
