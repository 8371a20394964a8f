"""A pool: everything a server leases of the states it has reserved."""

from bedstone.errors import CallerError
from bedstone.pool import lease as leases
from bedstone.pool import parked as tier
from bedstone.pool.checkpoint import Checkpoint
from bedstone.pool.chunks import Arenas
from bedstone.pool.copies import Copies, SlotClear
from bedstone.pool.denial import Busy, Denial, HostFull
from bedstone.pool.exchange import Exchange, Remap
from bedstone.pool.geometry import Geometry
from bedstone.pool.host import Host, HostRoom
from bedstone.pool.lease import Lease
from bedstone.pool.parked import Parked, Waking
from bedstone.pool.stock import Tally
from bedstone.pool.store import Piece, Store


class Pool:
    """Pages, slots and, with `room`, a tier on the host.

    With `arenas` memory goes from pages to slots and back: what `geometry` says is there at first.

    Single-threaded accounts: nothing here moves data. Whatever is given out is closed by whoever
    holds it; the copies and moves that come with it are made in the order they are returned.
    """

    def __init__(
        self, geometry: Geometry, room: HostRoom | None = None, arenas: Arenas | None = None
    ) -> None:
        self.geometry = geometry
        self._host = Host(room) if room else None
        self._exchange = Exchange(arenas, geometry) if arenas else None
        self._store = Store(geometry, self._host, self._exchange)

    @property
    def pages(self) -> Tally:
        """How many pages are free, held and kept."""
        return self._store.pages.tally

    @property
    def slots(self) -> Tally:
        """How many slots are free, held and kept, the null line not among them."""
        return self._store.slots.tally

    @property
    def host_free(self) -> int:
        """Free bytes of the host tier."""
        return self._host.free if self._host else 0

    @property
    def remap(self) -> Remap | None:
        """What is to be moved before what `Remapping` spoke of can be had; say when it `landed`."""
        return self._exchange.remap if self._exchange else None

    def landed(self) -> None:
        """The remap was made.

        Raises `CallerError`: there was none.
        """
        if self._exchange is None or self._exchange.remap is None:
            raise CallerError("a remap has landed that the pool knows nothing of")
        self._exchange.land()

    def foresee(self, pages: int) -> None:
        """Soon so many pages are to be free: plan a remap now where one will be needed."""
        if self._exchange is not None and self.pages.free < pages:
            self._exchange.provide(pages, 0)

    def most_pages(self, slots: int) -> int:
        """How many pages there can be beside so many slots, were nothing else held."""
        return self._exchange.most_pages(slots) if self._exchange else self.geometry.pages

    def can_free(self, missing: Busy) -> bool:
        """Whether what no lease has could make up for a denial, were all of it given up.

        Where memory goes from pages to slots, that is by its bytes: chunks that a lease has part of
        may still be in the way.
        """
        if self._exchange is not None:
            return self._exchange.could(missing.pages, missing.slots)
        return missing.pages <= self.pages.kept and missing.slots <= self.slots.kept

    def lease(
        self, tokens: int, prefix: Checkpoint | None = None, length: int | None = None
    ) -> Lease | Denial:
        """Room for `tokens` tokens in all, and a slot: all of it or a denial.

        It goes on from `length` tokens of `prefix`, by default all of them: its whole pages are
        shared, the part filled one and the slot are copied (`Lease.copies`). The slot of a
        sequence that begins is cleared.

        Raises `CallerError`: the prefix has no state of that length, or is longer, or is missing.
        """
        if prefix is not None:
            return leases.restore(self._store, prefix, tokens, length)
        if length:
            raise CallerError(f"{length} tokens of no prefix: expected a checkpoint of as many")
        if denial := self._store.never(tokens):
            return denial
        slots = int(self.geometry.per_sequence)
        taken = self._store.take(self.geometry.pages_for(tokens), slots, leased=True)
        if not isinstance(taken, Piece):
            return taken
        begun = Copies(slots=tuple(map(SlotClear, taken.slots)))
        return Lease(self._store, taken, copies=begun)

    def resume(self, checkpoint: Checkpoint, tokens: int) -> Lease | Denial:
        """A lease of `tokens` tokens in all that a checkpoint becomes, without a copy.

        A denial leaves the checkpoint as it is.

        Raises `CallerError`: the checkpoint is longer.
        """
        return leases.resume(self._store, checkpoint, tokens)

    def park(self, checkpoint: Checkpoint) -> Parked | HostFull:
        """The checkpoint on the host as well, once `Parked.moves` are made.

        Its pages are free when it is closed, which is for then.
        """
        return tier.park(self._store, checkpoint)

    def wake(self, parked: Parked, length: int | None = None) -> Waking | Denial:
        """The first `length` tokens of what is parked, by default all, on their way back.

        Raises `CallerError`: it has no state of that length.
        """
        return tier.wake(self._store, parked, length)
