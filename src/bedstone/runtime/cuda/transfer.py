"""Copies between states and page-locked memory, in a stream that no step waits for."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from bedstone.runtime.cuda.driver import CudaError, Driver
from bedstone.runtime.device import RowCopy

_MOST_BYTES = 8 * 2**20
"""Of a copy: what a step copies waits for one that a copy engine is at, some 150 us."""


def plan_copies(copies: Iterable[RowCopy], most: int) -> Iterator[RowCopy]:
    """The same in pieces of `most` bytes, or a row where that is more than a run of bytes."""
    for copy in copies:
        if copy.whole:
            yield from _runs(copy, most)
            continue
        count = max(1, most // copy.width)
        for row in range(0, copy.rows, count):
            source = copy.source + row * copy.source_pitch
            target = copy.target + row * copy.target_pitch
            rows = min(count, copy.rows - row)
            piece = RowCopy(source, copy.source_pitch, target, copy.target_pitch, rows, copy.width)
            yield from _runs(piece, most) if piece.whole else (piece,)


def _runs(copy: RowCopy, most: int) -> Iterator[RowCopy]:
    """Parts of a run of bytes."""
    nbytes = copy.rows * copy.width
    for at in range(0, nbytes, most):
        width = min(most, nbytes - at)
        yield RowCopy(copy.source + at, width, copy.target + at, width, 1, width)


class Transfer:
    """Copies under way: over once the stream has come to an event."""

    def __init__(self, driver: Driver, over: int) -> None:
        self._driver = driver
        self._over: int | None = over

    @property
    def ready(self) -> bool:
        """Whether the stream has come to the event."""
        return self._over is None or self._driver.passed(self._over)

    def wait(self) -> None:
        """Return once it has."""
        if self._over is not None:
            over, self._over = self._over, None
            self._driver.wait(over)
            self._driver.end_event(over)


class Transfers:
    """A stream of its own, behind what the compute stream had when each copy was asked for."""

    def __init__(self, driver: Driver, compute: int) -> None:
        self._driver = driver
        self._compute = compute
        self._stream: int | None = None

    def start(self, copies: Sequence[RowCopy]) -> Transfer:
        """Enqueue copies, in the order of these calls."""
        driver = self._driver
        if self._stream is None:
            self._stream = driver.stream()
        before, over = driver.event(), driver.event()
        driver.record(before, self._compute)
        driver.follow(self._stream, before)
        driver.end_event(before)
        for piece in plan_copies(copies, _MOST_BYTES):
            if piece.rows == 1:
                driver.copy(piece.target, piece.source, piece.width, self._stream)
            else:
                driver.copy_rows(piece, self._stream)
        driver.record(over, self._stream)
        return Transfer(driver, over)

    def close(self) -> None:
        """Return once nothing is under way."""
        if self._stream is not None:
            with contextlib.suppress(CudaError):  # after a fault every call answers with it
                self._driver.sync(self._stream)
                self._driver.end_stream(self._stream)
            self._stream = None
