"""Memory that goes from pages to slots and back while sequences run."""

from bedstone.pool import Arena, Arenas, Pool
from bedstone.runtime.device import Moving
from bedstone.runtime.executor import Executor
from bedstone.runtime.remap import ChunkMove, Remaps


def arenas_of(session: Executor, unit: int) -> Arenas | None:
    """What lies under pages of `unit` tokens and slots; None where memory stays where it is."""
    exchange = session.capacity.exchange
    if exchange is None:
        return None
    capacity, states = session.capacity, session.manifest.states.values()

    def arena(each: int, of: int, count: int) -> Arena:
        return Arena(each, -(-of * count // exchange.chunk))

    return Arenas(
        exchange.chunk,
        tuple(
            arena(unit * state.bytes_per_token, state.bytes_per_token, capacity.tokens)
            for state in states
            if state.bytes_per_token
        ),
        tuple(
            arena(state.bytes_per_seq, state.bytes_per_seq, capacity.slots)
            for state in states
            if state.bytes_per_seq
        ),
        exchange.tokens // unit,
        exchange.slots,
    )


class Remapper:
    """Has the remaps that a pool plans made by a session, and tells it when they are.

    `names` are the states by the numbers of their arenas. `made` counts.
    """

    def __init__(self, pool: Pool, arenas: Arenas, remaps: Remaps, names: tuple[str, ...]) -> None:
        self.made = 0
        self._pool = pool
        self._arenas = arenas
        self._remaps = remaps
        self._names = names
        self._under_way: Moving | None = None

    @property
    def page_bytes(self) -> int:
        """Bytes of a page in all states."""
        return self._arenas.bytes_for(1, 0)

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot in all states."""
        return self._arenas.bytes_for(0, 1)

    @property
    def unheld_bytes(self) -> int:
        """Bytes that no sequence holds."""
        arenas, pool = self._arenas, self._pool
        held = arenas.bytes_for(pool.pages.held, pool.slots.held)
        return arenas.budget * arenas.chunk - held

    def landed(self) -> bool:
        """Whether a remap that was under way is over, as the pool knows from now on."""
        return self._under_way is not None and self.go_on(wait=False)

    def go_on(self, *, wait: bool) -> bool:
        """Take what the pool has planned further; whether nothing of it is left to do.

        Raises `DeviceError`: the device refused, and the memory is lost.
        """
        planned = self._pool.remap
        if planned is None:
            return True
        if self._under_way is None:
            moves = [(*each.source, *each.target) for each in planned.moves]
            names = self._names
            self._under_way = self._remaps.start(
                [ChunkMove(names[one], at, names[two], to) for one, at, two, to in moves]
            )
        if not (wait or self._under_way.ready):
            return False
        self._under_way.wait()
        self._under_way = None
        self._pool.landed()
        self.made += 1
        return True
