"""Memory that goes from pages to slots and back: what a remap moves, and when there is one."""

from collections.abc import Iterator

from bedstone.pool.chunks import Arenas, Chunks, Position
from bedstone.pool.elastic import ABSENT, ARRIVING, FREE, LEAVING, Elastic
from bedstone.pool.geometry import Geometry
from bedstone.spec.frozen import Frozen

Need = tuple[int, int]
"""So many pages, and so many slots."""

_Object = tuple[int, int]
"""0 for a page and 1 for a slot, and its number."""


class ChunkMove(Frozen):
    """A chunk that nobody needs goes from one position (arena, chunk of its addresses) to another.

    What is behind the other is zero before anything reads it.
    """

    source: Position
    target: Position


class Remap(Frozen):
    """What is to be moved, once everything that was asked of the device before is over."""

    moves: tuple[ChunkMove, ...]


class Exchange:
    """Pages and slots over one budget of memory. One remap at a time is pending or under way."""

    def __init__(self, arenas: Arenas, geometry: Geometry) -> None:
        self.arenas = arenas
        self.pages = Elastic(0, geometry.pages, arenas.most_pages)
        self.slots = Elastic(1, geometry.slots, arenas.most_slots)
        self.remap: Remap | None = None
        self._first = geometry
        self._chunks = Chunks(arenas, geometry.pages, geometry.slots)
        # the null line is nobody's to give
        self._bytes = arenas.budget * arenas.chunk - arenas.bytes_for(0, 1)
        self._going: list[_Object] = []
        self._coming: list[_Object] = []
        self._refused: tuple[int, ...] | None = None

    def holds(self, pages: int, slots: int) -> bool:
        """Whether an empty pool can have so many pages and slots at once."""
        arenas, first = self.arenas, self._first
        if pages <= first.pages and slots < first.slots:
            return True
        fits = arenas.chunks_for(pages, slots + 1) <= arenas.budget
        return fits and pages <= arenas.most_pages and slots < arenas.most_slots

    def most_pages(self, slots: int) -> int:
        """How many pages an empty pool can have beside so many slots."""
        low, high = 0, self.arenas.most_pages
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.holds(middle, slots) else (low, middle - 1)
        return low

    def could(self, pages: int, slots: int) -> bool:
        """Whether all that no lease has is as many bytes as what is missing, and is free, take."""
        unleased = self._bytes - self.arenas.bytes_for(*(s.tally.held for s in self._stocks))
        free = self.arenas.bytes_for(self.pages.free + pages, self.slots.free + slots)
        return free <= unleased

    def provide(self, pages: int, slots: int) -> bool:
        """See to it that so many pages and slots are free; False: others use the memory.

        They are free at once where nothing has to move; else a remap is to be made first.
        """
        need = pages, slots
        if self.arenas.bytes_for(*need) > self._bytes - self._used_bytes():
            return False
        if self.remap is not None:
            return True
        now = (*need, self.pages.free, self.slots.free)
        # what was refused is looked at again when more of either is free
        if self._refused and _no_better(now, self._refused):
            return False
        planned = self._plan(need)
        if planned is None:
            self._refused = now
            return False
        self.remap = planned
        if not planned.moves:
            self.land()
        return True

    def land(self) -> None:
        """The remap was made."""
        self.remap = self._refused = None
        for kind, number in self._going:
            self._stocks[kind].turn(number, ABSENT)
        for kind, number in self._coming:
            self._stocks[kind].turn(number, FREE)
        self._going, self._coming = [], []

    @property
    def _stocks(self) -> tuple[Elastic, Elastic]:
        return self.pages, self.slots

    def _used_bytes(self) -> int:
        return self.arenas.bytes_for(self.pages.used, self.slots.used)

    def _plan(self, need: Need) -> Remap | None:
        """The lowest absent of what is short come for the highest free of what is not."""
        possible = all(self._bring(kind, need[kind]) for kind in range(2))
        if possible:
            leaving = [self._leaving(kind) for kind in range(2)]
            for kind in range(2):
                self._send(kind, need[kind], leaving[kind])
            for kind in range(2):
                self._close_up(kind, leaving[kind])
        if not (possible and self._chunks.enough):
            self._undo()
            return None
        self._spare_neighbours()
        return Remap(tuple(ChunkMove(*each) for each in self._chunks.settle()))

    def _bring(self, kind: int, wanted: int) -> bool:
        """Absent ones come, so that as many are free; False: addresses end."""
        stock = self._stocks[kind]
        while stock.free + stock.arriving < wanted:
            number = stock.lowest_absent()
            if number is None:
                return False
            self._come(kind, number)
        return True

    def _leaving(self, kind: int) -> Iterator[int]:
        """Free ones, the highest first, but for those of which others need all the chunks."""
        stock, number = self._stocks[kind], None
        while (number := stock.highest_free(number)) is not None:
            if self._chunks.may_free(kind, number, stock.any_stays):
                yield number

    def _send(self, kind: int, wanted: int, leaving: Iterator[int]) -> None:
        """Free ones beyond those that are wanted go, as far as memory is short."""
        while not self._chunks.enough and self._stocks[kind].free > wanted:
            number = next(leaving, None)
            if number is None:
                return
            self._go(kind, number)

    def _close_up(self, kind: int, leaving: Iterator[int]) -> None:
        """Free ones go for lower ones, as far as memory is short: those need fewer chunks."""
        while not self._chunks.enough:
            high, low = next(leaving, None), self._stocks[kind].lowest_absent()
            if high is None or low is None or high < low:
                return
            self._go(kind, high)
            self._come(kind, low)

    def _spare_neighbours(self) -> None:
        """What went in vain is back: others need all of its chunks."""
        gone, self._going = self._going, []
        for kind, number in gone:
            if self._chunks.shared(kind, number):
                self._chunks.arrive(kind, number)
                self._stocks[kind].turn(number, FREE)
            else:
                self._going.append((kind, number))

    def _come(self, kind: int, number: int) -> None:
        self._stocks[kind].turn(number, ARRIVING)
        self._chunks.arrive(kind, number)
        self._coming.append((kind, number))

    def _go(self, kind: int, number: int) -> None:
        self._stocks[kind].turn(number, LEAVING)
        self._chunks.leave(kind, number)
        self._going.append((kind, number))

    def _undo(self) -> None:
        for kind, number in self._going:
            self._stocks[kind].turn(number, FREE)
            self._chunks.arrive(kind, number)
        for kind, number in self._coming:
            self._stocks[kind].turn(number, ABSENT)
            self._chunks.leave(kind, number)
        self._going, self._coming = [], []


def _no_better(now: tuple[int, ...], refused: tuple[int, ...]) -> bool:
    """Whether no less is wanted than what was refused, and no more is free."""
    (pages, slots, *free), (pages_then, slots_then, *free_then) = now, refused
    wanted = pages >= pages_then and slots >= slots_then
    return wanted and all(a <= b for a, b in zip(free, free_then, strict=True))
