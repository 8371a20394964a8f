"""The arena while a schedule is run on symbols: which bytes hold which piece of which value."""

from bisect import bisect_left, bisect_right

from bedstone.lane.schedule import Piece, Slot
from bedstone.lane.terms import Term


class Memory:
    """Bytes written and not written over since; a slot is read whole or not at all."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._cells: dict[int, tuple[Slot, Piece, Term]] = {}

    def write(self, slot: Slot, piece: Piece, term: Term) -> None:
        """Fill a slot; whatever it meets is gone."""
        first = max(0, bisect_right(self._starts, slot.offset) - 1)
        last = bisect_left(self._starts, slot.end)
        for start in self._starts[first:last]:
            if self._cells[start][0].end > slot.offset:
                del self._cells[start]
        kept = [start for start in self._starts[first:last] if start in self._cells]
        self._starts[first:last] = sorted([*kept, slot.offset])
        self._cells[slot.offset] = (slot, piece, term)

    def read(self, slot: Slot, piece: Piece) -> Term | None:
        """The value a slot holds this piece of; None if it holds anything else."""
        cell = self._cells.get(slot.offset)
        return cell[2] if cell is not None and cell[:2] == (slot, piece) else None
