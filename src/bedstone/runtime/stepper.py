"""A session looked into: its programs run some calls at a time, its memory read and set.

Whoever steps has the session for itself: nothing here waits for a run that another thread began.
"""

import ctypes
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.runtime.device import Memory
from bedstone.runtime.executor import Executor
from bedstone.runtime.image import Capture
from bedstone.runtime.lower import Region
from bedstone.spec.manifest import BufferKind

_FIXED: tuple[BufferKind, ...] = ("weight", "source", "peer")
_STEPS = ("cpu", "cuda")
_ADDRESSED = ("cpu",)
"""Devices whose memory is this process's own."""


class Stepper:
    """Runs stretches of a session's programs.

    `regions` are all that a step may change, and its inputs: states, scratch, and buffers that are
    no weights.

    Raises `CallerError`: the device is one that computes nothing.
    """

    def __init__(self, session: Executor) -> None:
        loaded = session.loaded
        if loaded.device.name not in _STEPS:
            raise CallerError(
                f"device `{loaded.device.name}` computes nothing: expected one of "
                + ", ".join(f"`{name}`" for name in _STEPS)
            )
        self.session = session
        self._addressed = loaded.device.name in _ADDRESSED
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
        self._stretches: dict[tuple[Capture, int, int, bool], Capture] = {}

    @property
    def sizes(self) -> Mapping[Region, int]:
        """Bytes of each region."""
        return {region: memory.nbytes for region, memory in self.regions.items()}

    def run(
        self, program: str, start: int, stop: int, given: Mapping[str, int], *, times: int = 1
    ) -> None:
        """Run calls [start, stop) of a program under the vars of a whole run, so many times."""
        capture = self._programs[program].capture(given)
        first, end = self._first[program][start], self._first[program][stop]
        if first < end:
            self._device.replay(self._stretch(capture, first, end, times > 1), times, ()).wait()

    def _stretch(self, whole: Capture, first: int, end: int, again: bool) -> Capture:  # noqa: FBT001
        """Launches [first, end) of a capture; what is run `again` and again a device may record."""
        if end - first == whole.count:
            return whole
        key = (whole, first, end, again)
        if key not in self._stretches:
            self._stretches[key] = whole.part(first, end - first)
            self._stretches[key].kept = again
        found = self._stretches[key]
        found.edition = whole.edition
        return found

    def read(self, region: Region, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        """A copy of bytes [start, stop) of a region, by default of all."""
        memory = self.regions[region]
        end = memory.nbytes if stop is None else min(stop, memory.nbytes)
        return self._device.read(memory.address + start, end - start)

    def view(self, region: Region) -> NDArray[np.uint8]:
        """A region's bytes, to look at: where they lie if they lie in this process's own memory."""
        memory = self.regions[region]
        if not self._addressed:
            return self._device.read(memory.address, memory.nbytes)
        there = (ctypes.c_uint8 * memory.nbytes).from_address(memory.address)
        return np.frombuffer(memoryview(there), np.uint8)

    @contextmanager
    def edit(
        self, region: Region, start: int = 0, stop: int | None = None
    ) -> Iterator[NDArray[np.uint8]]:
        """Bytes [start, stop) of a region, by default all, to change.

        What they are at the end is what the region holds.
        """
        here = self._addressed
        data = self.view(region)[start:stop] if here else self.read(region, start, stop)
        yield data
        if not here:
            self.write(region, data, start)

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
