"""Free ranges of one block of bytes: first fit from either end, neighbours coalesce."""

from bisect import bisect_left


class Ranges:
    """The free bytes of a block, as ranges in order."""

    def __init__(self, nbytes: int) -> None:
        self._free = [(0, nbytes)] if nbytes else []
        self._nbytes = nbytes

    @property
    def free(self) -> int:
        """How many bytes are free."""
        return self._nbytes

    def take_low(self, size: int, count: int) -> tuple[int, ...] | None:
        """Where `count` pieces of `size` bytes lie, from the low end on; None: not all fit."""
        runs: list[range] = []
        missing = count
        for start, stop in self._free:
            if not missing:
                break
            fit = min((stop - start) // size, missing)
            runs.append(range(start, start + fit * size, size))
            missing -= fit
        if missing:
            return None
        for run in runs:
            self._cut(run.start, len(run) * size)
        return tuple(offset for run in runs for offset in run)

    def take_high(self, size: int) -> int | None:
        """Where a piece of `size` bytes lies, as high as it fits; None: it does not."""
        for start, stop in reversed(self._free):
            if stop - start >= size:
                self._cut(stop - size, size)
                return stop - size
        return None

    def give(self, offset: int, size: int) -> None:
        """A taken piece is free again."""
        at = bisect_left(self._free, (offset, offset))
        start, stop = offset, offset + size
        low = high = at
        if at and self._free[at - 1][1] == start:
            low, start = at - 1, self._free[at - 1][0]
        if at < len(self._free) and self._free[at][0] == stop:
            high, stop = at + 1, self._free[at][1]
        self._free[low:high] = [(start, stop)]
        self._nbytes += size

    def _cut(self, offset: int, size: int) -> None:
        if not size:
            return
        at = bisect_left(self._free, (offset + 1, 0)) - 1
        start, stop = self._free[at]
        rest = [(start, offset), (offset + size, stop)]
        self._free[at : at + 1] = [each for each in rest if each[0] < each[1]]
        self._nbytes -= size
