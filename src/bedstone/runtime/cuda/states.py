"""Memory of states: addresses reserved once, physical memory put behind them in chunks.

A pooled state reserves as many addresses as all pooled states together have memory for, so that
chunks may move to it later without anything that points at it changing.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from bedstone.errors import CapacityError
from bedstone.runtime.cuda.driver import OUT_OF_MEMORY, CudaError, Driver
from bedstone.runtime.device import Memory, StateNeed
from bedstone.runtime.memory import rounded_up


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


@dataclass(slots=True)
class _Held:
    address: int
    reserved: int
    mapped: list[tuple[int, int, int]] = field(default_factory=list)


class States:
    """The arenas of a device."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._held: list[_Held] = []

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

    def close(self) -> None:
        """Unmap everything and give it back."""
        for held in reversed(self._held):
            with contextlib.suppress(CudaError):  # after a fault every call answers with it
                self._release(held)
        self._held.clear()

    def _allocate(self, arena: Arena, stream: int) -> Memory:
        if not arena.reserved:
            return Memory(0, 0, None)
        held = _Held(self._driver.reserve(arena.reserved), arena.reserved)
        self._held.append(held)
        at = held.address
        for nbytes in arena.chunks:
            chunk = self._driver.create(nbytes)
            self._driver.map(at, nbytes, chunk)
            held.mapped.append((at, nbytes, chunk))
            at += nbytes
        if at > held.address:
            self._driver.allow(held.address, at - held.address)
            self._driver.zero(held.address, at - held.address, stream)
        return Memory(held.address, arena.nbytes, held, arena.reserved)

    def _release(self, held: _Held) -> None:
        for address, nbytes, chunk in held.mapped:
            self._driver.unmap(address, nbytes)
            self._driver.discard(chunk)
        self._driver.unreserve(held.address, held.reserved)
