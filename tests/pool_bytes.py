"""The memory that a pool accounts for: each position holds the prefix it is the state of."""

from collections.abc import Iterable, Sequence

from bedstone.pool import (
    Checkpoint,
    Copies,
    Geometry,
    HostRoom,
    Lease,
    Moves,
    Parked,
    SlotClear,
)

Prefix = tuple[int, ...]
POISON: Prefix = (-1,)


class Memory:
    """Pages of positions, slots, and a host block of which each stride holds a page or a slot."""

    def __init__(self, geometry: Geometry, room: HostRoom | None) -> None:
        self.geometry = geometry
        self.room = room
        self.positions = [POISON] * (geometry.pages * geometry.unit)
        self.slots = [POISON] * geometry.slots
        self.host: dict[int, list[Prefix]] = {}

    def make(self, copies: Copies) -> None:
        """Do what is to be done before a step."""
        for page in copies.pages:
            source, target = (each * self.geometry.unit for each in (page.source, page.target))
            read = self.positions[source : source + page.tokens]
            self.positions[target : target + page.tokens] = read
        for slot in copies.slots:
            for each in range(slot.count):
                cleared = isinstance(slot, SlotClear)
                read_slot = () if cleared else self.slots[slot.source + each]
                self.slots[slot.target + each] = read_slot

    def move(self, moves: Moves) -> None:
        """Do what is to be done between the device and the host."""
        for page in moves.pages:
            for each in range(page.count):
                offset = page.offset + each * self.room.page_stride
                start = (page.page + each) * self.geometry.unit
                self._move(moves, offset, self.positions, start, self.geometry.unit)
        for slot in moves.slots:
            for each in range(slot.count):
                offset = slot.offset + each * self.room.slot_stride
                self._move(moves, offset, self.slots, slot.slot + each, 1)

    def _move(self, moves: Moves, offset: int, array: list[Prefix], start: int, count: int) -> None:
        if moves.to_host:
            self.host[offset] = array[start : start + count]
        else:
            array[start : start + count] = self.host[offset]

    def write(self, lease: Lease, tokens: Prefix, more: Prefix) -> None:
        """Run `more` through a lease of `tokens`."""
        lease.advance(len(more))
        if self.geometry.per_sequence:
            assert self.slots[lease.slot] == tokens
            self.slots[lease.slot] = tokens + more
        for at in range(len(tokens), len(tokens + more)):
            if self.geometry.pages:
                page, inside = divmod(at, self.geometry.unit)
                where = lease.pages[page] * self.geometry.unit + inside
                self.positions[where] = (tokens + more)[: at + 1]

    def require(self, held: Lease | Checkpoint, tokens: Prefix) -> None:
        """What is held reads as the state of `tokens`."""
        assert held.length == len(tokens)
        if self.geometry.per_sequence:
            assert self.slots[held.slot] == tokens
        if self.geometry.pages:
            read = [at for page in held.pages for at in self._page(page)][: len(tokens)]
            assert read == prefixes(tokens)

    def require_parked(self, parked: Parked, tokens: Prefix) -> None:
        """What is parked reads as the state of `tokens`."""
        assert parked.length == len(tokens)
        if self.geometry.per_sequence:
            assert self.host[parked.place.slot] == [tokens]
        read = [at for offset in parked.place.pages for at in self.host[offset]]
        if self.geometry.pages:
            assert read[: len(tokens)] == prefixes(tokens)

    def poison(self, pages: Iterable[int], slots: Iterable[int], offsets: Iterable[int]) -> None:
        """Overwrite all but these."""
        unit = self.geometry.unit
        for page in set(range(self.geometry.pages)) - set(pages):
            self.positions[page * unit : (page + 1) * unit] = [POISON] * unit
        for slot in set(range(self.geometry.slots)) - set(slots):
            self.slots[slot] = POISON
        for offset in set(self.host) - set(offsets):
            del self.host[offset]

    def _page(self, page: int) -> Sequence[Prefix]:
        start = page * self.geometry.unit
        return self.positions[start : start + self.geometry.unit]


def prefixes(tokens: Prefix) -> list[Prefix]:
    """Each position's content."""
    return [tokens[: at + 1] for at in range(len(tokens))]
