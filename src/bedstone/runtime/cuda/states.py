"""Memory of states: addresses reserved once, physical memory put behind them in chunks.

A pooled state reserves as many addresses as all pooled states together have memory for, so that
chunks may move to it later without anything that points at it changing.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from bedstone.errors import CapacityError
from bedstone.runtime.cuda.driver import OUT_OF_MEMORY, CudaError, Driver
from bedstone.runtime.device import Memory, StateNeed
from bedstone.runtime.memory import rounded_up, runs


@dataclass(frozen=True, slots=True)
class Arena:
    """One state: bytes of addresses to reserve, and the chunks to put behind the first of them."""

    nbytes: int
    reserved: int
    chunks: tuple[int, ...]

    @property
    def mapped(self) -> int:
        """Bytes with memory behind them."""
        return sum(self.chunks)


def plan_arenas(needs: Sequence[StateNeed], chunk: int, granule: int) -> tuple[Arena, ...]:
    """What each state reserves and maps: whole chunks if it is pooled, one piece if it is not."""
    pooled = [rounded_up(need.nbytes, chunk) for need in needs if need.unit]
    budget = sum(pooled)
    arenas = []
    for need in needs:
        if need.unit:
            chunks = (chunk,) * (rounded_up(need.nbytes, chunk) // chunk)
            arenas.append(Arena(need.nbytes, budget, chunks))
        else:
            whole = rounded_up(need.nbytes, granule)
            arenas.append(Arena(need.nbytes, whole, (whole,) if whole else ()))
    return tuple(arenas)


class States:
    """The arenas of a device: what is reserved, and which chunk of what size lies where."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._reserved: dict[int, int] = {}
        self._mapped: dict[int, tuple[int, int]] = {}

    def allocate(self, arenas: Sequence[Arena], stream: int) -> tuple[Memory, ...]:
        """Reserve and map every arena, zero-filled.

        Raises `CapacityError`: there is not as much memory.
        """
        try:
            return tuple(self._allocate(arena, stream) for arena in arenas)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            total = sum(arena.mapped for arena in arenas)
            raise CapacityError(
                f"{total} bytes of states are not to be had: {self._driver.free_bytes()} bytes of "
                "device memory are left"
            ) from error

    def move(self, moves: Sequence[tuple[int, int]], nbytes: int) -> None:
        """Put chunks of `nbytes` at some addresses behind others, (from, to) each.

        Nothing uses either. Any thread may ask, while no other does.
        """
        for source, target in moves:
            self._driver.unmap(source, nbytes)
            _, chunk = self._mapped.pop(source)
            try:
                self._map(target, nbytes, chunk)
            except CudaError:
                self._driver.discard(chunk)
                raise
        for start, stop in runs((target for _, target in moves), nbytes):
            self._driver.allow(start, stop - start)

    def close(self) -> None:
        """Unmap everything and give it back."""
        with contextlib.suppress(CudaError):  # after a fault every call answers with it
            for address, (nbytes, chunk) in self._mapped.items():
                self._driver.unmap(address, nbytes)
                self._driver.discard(chunk)
            for address, nbytes in reversed(self._reserved.items()):
                self._driver.unreserve(address, nbytes)
        self._mapped.clear()
        self._reserved.clear()

    def _allocate(self, arena: Arena, stream: int) -> Memory:
        if not arena.reserved:
            return Memory(0, 0, None)
        address = at = self._driver.reserve(arena.reserved)
        self._reserved[address] = arena.reserved
        for nbytes in arena.chunks:
            self._map(at, nbytes, self._driver.create(nbytes))
            at += nbytes
        if at > address:
            self._driver.allow(address, at - address)
            self._driver.zero(address, at - address, stream)
        return Memory(address, arena.nbytes, self, arena.reserved)

    def _map(self, address: int, nbytes: int, chunk: int) -> None:
        self._driver.map(address, nbytes, chunk)
        self._mapped[address] = nbytes, chunk
