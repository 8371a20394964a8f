"""Physical memory under pages and slots: chunks of one size, which arena has each, who needs it.

Every paged state, and every one of a sequence's own, is an arena: addresses for as many objects as
there can ever be. A chunk lies behind a *position* of an arena; objects that are neighbours may
need the same one. Chunks are never made or given back, so that they add up to the same always.
"""

from collections.abc import Callable, Iterator, Sequence

from bedstone.errors import CallerError
from bedstone.spec.frozen import Frozen

Position = tuple[int, int]
"""An arena, and which chunk of its addresses."""


class Arena(Frozen):
    """A state whose objects (pages or slots) take `each` bytes; `chunks` lie behind it at first."""

    each: int
    chunks: int


class Arenas(Frozen):
    """One budget of memory, in chunks of `chunk` bytes, under paged and per-sequence states.

    `most_pages` and `most_slots`, the null line among these, are how far their addresses go.
    Arenas are numbered through, those of pages first.

    Raises `CallerError`: a number is out of range, or there is one kind only.
    """

    chunk: int
    pages: tuple[Arena, ...]
    slots: tuple[Arena, ...]
    most_pages: int
    most_slots: int

    def __post_init__(self) -> None:
        least = min((arena.each for arena in (*self.pages, *self.slots)), default=0)
        if not (self.pages and self.slots) or min(least, self.chunk) < 1:
            raise CallerError(f"{self}: expected pages and slots, and no size below 1")

    @property
    def kinds(self) -> tuple[tuple[Arena, ...], tuple[Arena, ...]]:
        """The arenas of pages, and those of slots."""
        return self.pages, self.slots

    @property
    def budget(self) -> int:
        """How many chunks there are."""
        return sum(arena.chunks for kind in self.kinds for arena in kind)

    def chunks_for(self, pages: int, slots: int) -> int:
        """How many the lowest so many pages and slots, the null line among these, need."""
        counts = zip(self.kinds, (pages, slots), strict=True)
        return sum(-(-n * arena.each // self.chunk) for kind, n in counts for arena in kind)

    def bytes_for(self, pages: int, slots: int) -> int:
        """How many bytes so many pages and slots take."""
        counts = zip(self.kinds, (pages, slots), strict=True)
        return sum(n * arena.each for kind, n in counts for arena in kind)


class _Layout:
    """Arenas whose objects are of one size and one kind: an object needs the same of each."""

    def __init__(self, each: int, chunk: int, arenas: Sequence[int], most: int) -> None:
        self.each = each
        self.arenas = arenas
        self.users = [0] * -(-most * each // chunk)
        self._chunk = chunk

    def needed(self, number: int) -> range:
        """The positions that an object needs."""
        first = number * self.each // self._chunk
        return range(first, ((number + 1) * self.each - 1) // self._chunk + 1)

    def needing(self, at: int) -> range:
        """The objects that need a position."""
        first, end = at * self._chunk // self.each, (at + 1) * self._chunk
        return range(first, -(-end // self.each))

    def fill(self, present: int) -> None:
        """The lowest objects are there: count those that need each position."""
        for at in range(-(-present * self.each // self._chunk)):
            needing = self.needing(at)
            self.users[at] = min(needing.stop, present) - needing.start


class Chunks:
    """Where the chunks are. `kind` is 0 for pages and 1 for slots.

    A position is *idle* that has a chunk nobody needs, and *bare* if it needs one. A chunk stays
    where it is until another position is in want of it.
    """

    def __init__(self, arenas: Arenas, pages: int, slots: int) -> None:
        self._layouts = tuple(_layouts(arenas))
        self._idle: dict[Position, None] = {}
        self._bare: dict[Position, None] = {}
        numbered = enumerate([*arenas.pages, *arenas.slots])
        held = {number: arena.chunks for number, arena in numbered}
        for layouts, present in zip(self._layouts, (pages, slots), strict=True):
            for layout in layouts:
                layout.fill(present)
                needed = -(-present * layout.each // arenas.chunk)
                for arena in layout.arenas:
                    _require_held(arena, needed, held[arena])
                    self._idle |= {(arena, at): None for at in range(needed, held[arena])}

    @property
    def enough(self) -> bool:
        """Whether there is an idle chunk for each bare position."""
        return len(self._bare) <= len(self._idle)

    def arrive(self, kind: int, number: int) -> None:
        """An object needs its positions from now on."""
        for layout in self._layouts[kind]:
            users = layout.users
            for at in layout.needed(number):
                users[at] += 1
                if users[at] == 1:
                    self._turn(layout, at, self._idle, self._bare)

    def leave(self, kind: int, number: int) -> None:
        """An object needs them no longer: just what undoes `arrive`."""
        for layout in self._layouts[kind]:
            users = layout.users
            for at in layout.needed(number):
                users[at] -= 1
                if not users[at]:
                    self._turn(layout, at, self._bare, self._idle)

    def may_free(self, kind: int, number: int, stays: Callable[[range], bool]) -> bool:
        """Whether a chunk could be idle without an object: none that needs one of its `stays`."""
        for layout in self._layouts[kind]:
            for at in layout.needed(number):
                if not stays(layout.needing(at)):
                    return True
        return False

    def shared(self, kind: int, number: int) -> bool:
        """Whether others need every position that an object which is not there would."""
        return all(
            layout.users[at] for layout in self._layouts[kind] for at in layout.needed(number)
        )

    def settle(self) -> tuple[tuple[Position, Position], ...]:
        """Which idle chunk goes behind which bare position, the one idle longest first."""
        moves = tuple(zip(self._idle, self._bare, strict=False))
        for source, _ in moves:
            del self._idle[source]
        self._bare.clear()
        return moves

    @staticmethod
    def _turn(
        layout: _Layout, at: int, known: dict[Position, None], other: dict[Position, None]
    ) -> None:
        for arena in layout.arenas:
            place = arena, at
            if place in known:
                del known[place]
            else:
                other[place] = None


def _layouts(arenas: Arenas) -> Iterator[tuple[_Layout, ...]]:
    numbers = iter(range(len(arenas.pages) + len(arenas.slots)))
    for kind, most in zip(arenas.kinds, (arenas.most_pages, arenas.most_slots), strict=True):
        alike: dict[int, list[int]] = {}
        for arena, number in zip(kind, numbers, strict=False):
            alike.setdefault(arena.each, []).append(number)
        yield tuple(_Layout(each, arenas.chunk, some, most) for each, some in alike.items())


def _require_held(arena: int, needed: int, held: int) -> None:
    if needed > held:
        raise CallerError(f"arena {arena} has {held} chunks: expected {needed} at least")
