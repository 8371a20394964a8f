"""Memory of the host for bytes of a session's states that have to make way."""

import threading
from collections.abc import Callable, Sequence

from bedstone.errors import CallerError
from bedstone.runtime.device import Device, Memory, Moving, RowCopy
from bedstone.spec.frozen import Frozen


class HostRows(Frozen):
    """`rows` rows of `width` bytes, one after another in a state from byte `offset` on.

    On the host they lie `pitch` bytes apart from byte `at` on.
    """

    state: str
    offset: int
    at: int
    width: int
    rows: int = 1
    pitch: int = 0


class Reserve:
    """A block of memory of the host. What is saved and restored is done in that order."""

    def __init__(
        self,
        device: Device,
        memory: Memory,
        span: Callable[[str, int, int], int],
        lock: threading.RLock,
        is_closed: Callable[[], bool],
    ) -> None:
        self._device = device
        self._memory = memory
        self._span = span
        self._lock = lock
        self._is_closed = is_closed

    def save(self, rows: Sequence[HostRows]) -> Moving:
        """Copy bytes of states to the host, after the runs asked for before.

        Runs asked for after do not wait, and are not to write those bytes until it is over.

        Raises `CallerError`: rows are not inside a state or the block, or the session is closed.
        """
        ends = [(*self._ends(each), each) for each in rows]
        return self._transfer(
            [RowCopy(at, row.width, host, row.pitch, row.rows, row.width) for at, host, row in ends]
        )

    def restore(self, rows: Sequence[HostRows]) -> Moving:
        """Copy bytes back to states, after the runs asked for before.

        Runs asked for after do not wait: they are not to touch those bytes until it is over.

        Raises `CallerError`: as `save`.
        """
        ends = [(*self._ends(each), each) for each in rows]
        return self._transfer(
            [RowCopy(host, row.pitch, at, row.width, row.rows, row.width) for at, host, row in ends]
        )

    def close(self) -> None:
        """Let go of it, once nothing is under way; a session that is closed has let go of it."""
        with self._lock:
            if not self._is_closed():
                self._device.release(self._memory)

    def _transfer(self, copies: Sequence[RowCopy]) -> Moving:
        with self._lock:
            if self._is_closed():
                raise CallerError("the session is closed")
            return self._device.transfer(copies)

    def _ends(self, rows: HostRows) -> tuple[int, int]:
        """Where the first row lies in the state, and on the host."""
        stop = rows.at + (rows.rows - 1) * rows.pitch + rows.width
        inside = 0 <= rows.at <= stop <= self._memory.nbytes
        if rows.rows < 1 or not inside or (rows.rows > 1 and rows.pitch < rows.width):
            raise CallerError(f"{rows} is not inside a reserve of {self._memory.nbytes} bytes")
        address = self._span(rows.state, rows.offset, rows.rows * rows.width)
        return address, self._memory.address + rows.at
