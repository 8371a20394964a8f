"""The chunks under a pool, byte by byte: what lies where, and what a remap does to it."""

from bedstone.pool import Arenas, Geometry, Pool, Remap

NOTHING = None


class Ground:
    """Each position of each arena has the bytes of a chunk behind it, or nothing."""

    def __init__(self, arenas: Arenas, geometry: Geometry) -> None:
        self.arenas = arenas
        self.geometry = geometry
        self.behind: dict[tuple[int, int], list[object]] = {
            (number, at): [0] * arenas.chunk
            for number, arena in enumerate([*arenas.pages, *arenas.slots])
            for at in range(arena.chunks)
        }
        self.budget = len(self.behind)

    def make(self, remap: Remap) -> None:
        """Each chunk goes, and is zero where it comes."""
        for move in remap.moves:
            del self.behind[move.source]
            assert move.target not in self.behind
            self.behind[move.target] = [0] * self.arenas.chunk
        assert len(self.behind) == self.budget

    def spans(self, kind: int, number: int):
        """The bytes of an object: of which position, and which there."""
        first = 0 if kind == 0 else len(self.arenas.pages)
        for arena, described in enumerate(self.arenas.kinds[kind], first):
            for byte in range(number * described.each, (number + 1) * described.each):
                yield (arena, byte // self.arenas.chunk), byte % self.arenas.chunk

    def write(self, kind: int, number: int, value: object) -> None:
        """All of an object's bytes."""
        for position, at in self.spans(kind, number):
            self.behind[position][at] = value

    def require(self, kind: int, number: int, value: object) -> None:
        """All of an object's bytes are what was written."""
        for position, at in self.spans(kind, number):
            assert self.behind[position][at] == value, (kind, number)

    def require_there(self, kind: int, number: int) -> None:
        """An object that can be taken has memory."""
        for position, _ in self.spans(kind, number):
            assert position in self.behind, (kind, number)


def require_statuses(pool: Pool, ground: Ground, held: tuple[set[int], set[int]]) -> None:
    """Tallies are those of a count, and what is free or held has memory."""
    exchange = pool._exchange
    for kind, stock in enumerate((exchange.pages, exchange.slots)):
        numbers = range(kind, len(stock._status))
        counts = [sum(stock._status[n] == status for n in numbers) for status in range(5)]
        absent, free, used, arriving, leaving = counts
        tally = stock.tally
        assert (tally.absent, tally.free, tally.arriving, tally.leaving) == (
            absent, free, arriving, leaving,
        )  # fmt: skip
        assert tally.total == free + used
        assert {n for n in numbers if stock._status[n] == 2} == held[kind]
        for number in numbers:
            if stock._status[number] in {1, 2}:
                ground.require_there(kind, number)
        assert not (arriving or leaving) or pool.remap is not None
    ground.require_there(1, 0)
