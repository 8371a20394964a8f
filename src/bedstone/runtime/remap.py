"""Memory that goes from one state of a session to another, and back to where it was at first."""

import threading
from collections.abc import Mapping, Sequence

from bedstone.errors import CallerError
from bedstone.runtime.device import Device, Memory, Moving
from bedstone.runtime.lower import Region
from bedstone.runtime.memory import Exchange
from bedstone.spec.frozen import Frozen

_Place = tuple[str, int]
"""A state, and which chunk of its addresses."""


class ChunkMove(Frozen):
    """The memory of chunk `at` of state `source` goes to chunk `to` of state `target`."""

    source: str
    at: int
    target: str
    to: int


class Remaps:
    """The states of a session whose memory can go from one to another in chunks.

    One remap is under way at a time.
    """

    def __init__(
        self, device: Device, states: Mapping[str, Memory], chunk: int, lock: threading.RLock
    ) -> None:
        self._device = device
        self._states = states
        self._chunk = chunk
        self._lock = lock
        self._gained: dict[_Place, None] = {}
        self._lost: dict[_Place, None] = {}
        self._under_way: Moving | None = None

    def start(self, moves: Sequence[ChunkMove]) -> Moving:
        """Move memory, after the runs asked for before.

        Nothing may use what goes from now on, nor what comes until it is there, which is zero then.

        Raises `CallerError`: another remap is under way, or a chunk is not inside a state.
        """
        pairs = [((each.source, each.at), (each.target, each.to)) for each in moves]
        found = [(self._address(one), self._address(other)) for one, other in pairs]
        with self._lock:
            if self._under_way is not None:
                if not self._under_way.ready:
                    raise CallerError("a remap is under way: expected its end first")
                self._under_way.wait()
            self._under_way = self._device.remap(found, self._chunk)
            for one, other in pairs:
                _cancel(one, self._gained, self._lost)
                _cancel(other, self._lost, self._gained)
            return self._under_way

    def restore(self) -> None:
        """Put all memory back to where it was at first, and wait for that."""
        if self._under_way is None:
            return
        self._under_way.wait()
        back = list(zip(self._gained, self._lost, strict=True))
        if back:
            self.start([ChunkMove(*one, *other) for one, other in back]).wait()
        self._under_way = None

    def require_whole(self, region: str) -> None:
        """Accept a region that has the memory it had at first: any other is a `CallerError`."""
        if any(region == state for state, _ in (*self._gained, *self._lost)):
            raise CallerError(f"state `{region}` is not in one piece: its memory was remapped")

    def _address(self, place: _Place) -> int:
        state, at = place
        memory = self._states.get(state)
        if memory is None or not 0 <= at < memory.reserved // self._chunk:
            raise CallerError(f"no chunk {at} of {self._chunk} bytes in a state `{state}`")
        return memory.address + at * self._chunk


def remaps_of(
    device: Device,
    memory: Mapping[Region, Memory],
    exchange: Exchange | None,
    lock: threading.RLock,
) -> Remaps | None:
    """The remaps of a session that was loaded for them."""
    if exchange is None:
        return None
    states = {region.name: held for region, held in memory.items() if region.kind == "state"}
    return Remaps(device, states, exchange.chunk, lock)


def _cancel(place: _Place, known: dict[_Place, None], other: dict[_Place, None]) -> None:
    if place in known:
        del known[place]
    else:
        other[place] = None
