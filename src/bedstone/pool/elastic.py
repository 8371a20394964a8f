"""Numbers of which some have no memory for the time being."""

from collections.abc import Iterable
from heapq import heappop, heappush

from bedstone.pool.stock import Stock, Tally

ABSENT, FREE, HELD, ARRIVING, LEAVING = range(5)
"""What a number is: without memory, free, in use, or on its way to be free or absent."""


class Elastic(Stock):
    """A stock of which, at first, only the numbers below `present` have memory.

    The lowest and highest of a status are found by a scan of bytes, for a remap alone.
    """

    def __init__(self, first: int, present: int, stop: int) -> None:
        super().__init__(first, stop)
        self._total = self._free = present - first
        self._returned = list(range(first, present))
        self._status = bytearray([ABSENT]) * stop
        self._status[:first] = bytes([HELD]) * first
        self._status[first:present] = bytes([FREE]) * self._free
        # what left is listed as returned still: whoever takes the lowest looks at its status
        self._listed = bytearray(stop)
        self._listed[first:present] = bytes([True]) * self._free
        self._counts = {ABSENT: stop - present, ARRIVING: 0, LEAVING: 0}

    @property
    def tally(self) -> Tally:
        """How many are free and held, and how many have no memory."""
        return Tally(self._total, self._free, self._held, *self._counts.values())

    @property
    def arriving(self) -> int:
        """How many are on their way."""
        return self._counts[ARRIVING]

    @property
    def used(self) -> int:
        """How many a lease or a checkpoint has."""
        return self._total - self._free

    def lowest_absent(self) -> int | None:
        """The lowest without memory."""
        found = self._status.find(ABSENT)
        return None if found < 0 else found

    def highest_free(self, below: int | None = None) -> int | None:
        """The highest that can be taken, of those below a number."""
        found = self._status.rfind(FREE, 0, below)
        return None if found < 0 else found

    def any_stays(self, numbers: range) -> bool:
        """Whether any of some numbers is in use, or on its way."""
        first, stop, status = numbers.start, numbers.stop, self._status
        return status.find(HELD, first, stop) >= 0 or status.find(ARRIVING, first, stop) >= 0

    def turn(self, number: int, status: int) -> None:
        """One that nobody uses is of another status from now on."""
        before = self._status[number]
        self._count(before, -1)
        self._count(status, 1)
        self._status[number] = status
        if status == FREE and not self._listed[number]:
            heappush(self._returned, number)
            self._listed[number] = True

    def drop(self, numbers: Iterable[int], *, leased: bool) -> list[int]:
        """One user less for each; those that have none any more, which are free."""
        freed = super().drop(numbers, leased=leased)
        for number in freed:
            self._status[number] = FREE
            self._listed[number] = True
        return freed

    def _count(self, status: int, change: int) -> None:
        if status == FREE:
            self._total += change
            self._free += change
        else:
            self._counts[status] += change

    def _lowest(self) -> int:
        while True:
            number = heappop(self._returned)
            self._listed[number] = False
            if self._status[number] == FREE:
                self._status[number] = HELD
                return number
