"""Requests in their order, each to whoever is free next, in whichever process.

A file holds the bodies and then a row for each. All processes have it open with one offset, as the
operating system gives it to those who inherit it, so reading a row takes it from the others.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import IO

_ROW = Struct("<QQQd")
_AT_ONCE = -1.0


@dataclass(frozen=True, slots=True)
class Queued:
    """A request's number and body; `at` seconds after the start, None for at once."""

    ask: int
    body: bytes
    at: float | None


class Queue:
    """What is left of the requests in an open file."""

    def __init__(self, file: int) -> None:
        self._file = file

    def next(self) -> Queued | None:
        """The next one, taken; None when all are."""
        row = os.read(self._file, _ROW.size)
        if not row:
            return None
        ask, offset, length, at = _ROW.unpack(row)
        return Queued(ask, os.pread(self._file, length, offset), None if at == _AT_ONCE else at)


def write_queue(file: IO[bytes], bodies: Sequence[bytes], times: Sequence[float | None]) -> Queue:
    """Put requests into an empty file, and be before the first of them."""
    file.write(b"".join(bodies))
    rows, offset = file.tell(), 0
    for ask, (body, at) in enumerate(zip(bodies, times, strict=True)):
        file.write(_ROW.pack(ask, offset, len(body), _AT_ONCE if at is None else at))
        offset += len(body)
    file.flush()
    os.lseek(file.fileno(), rows, os.SEEK_SET)
    return Queue(file.fileno())
