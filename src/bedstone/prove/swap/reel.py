"""Changes of memory kept in a file: what a record takes is on disk, not in memory.

The file has no name and is gone with the last process that holds it. What one process puts there a
child of it, or the parent, can read: both know where from the pieces.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile, gettempdir

import numpy as np

from bedstone.errors import CapacityError
from bedstone.prove.swap.drive import Bytes
from bedstone.prove.swap.image import BLOCK, Blocks, Change
from bedstone.runtime.lower import Region


@dataclass(frozen=True, slots=True)
class Piece:
    """Blocks of a region from byte `start` of the file on: `count` indices, `held` of them data."""

    region: Region
    start: int
    count: int
    held: int

    @property
    def nbytes(self) -> int:
        """Bytes of the file that they take."""
        return self.count * np.dtype(np.int32).itemsize + self.held * BLOCK


class Reel:
    """A file of changes, one after the other.

    Raises `CapacityError`: there is no room for one more.
    """

    def __init__(self) -> None:
        try:
            self._file = TemporaryFile(prefix="bedstone-")  # noqa: SIM115 - it lives as long as this
        except OSError as error:
            raise CapacityError(f"no file for the record: {error.strerror}") from error
        self._end = 0

    def put(self, change: Change) -> tuple[Piece, ...]:
        """Keep a change; the pieces say where."""
        pieces = []
        for region, blocks in change.items():
            piece = Piece(region, self._end, len(blocks.at), len(blocks.data))
            self._write(blocks.at)
            self._write(blocks.data)
            pieces.append(piece)
        return tuple(pieces)

    def get(self, pieces: Sequence[Piece]) -> Mapping[Region, Blocks]:
        """A change that was kept."""
        return {piece.region: self._blocks(piece) for piece in pieces}

    def close(self) -> None:
        """Give the room back."""
        self._file.close()

    def _blocks(self, piece: Piece) -> Blocks:
        at, data = np.empty(piece.count, np.int32), np.empty((piece.held, BLOCK), np.uint8)
        self._read(at, piece.start)
        self._read(data, piece.start + at.nbytes)
        return Blocks(at, data)

    def _write(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
        left = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
        try:
            while left:
                written = os.pwrite(self._file.fileno(), left, self._end)
                self._end += written
                left = left[written:]
        except OSError as error:
            raise CapacityError(
                f"`{gettempdir()}` has no room for the record, {self._end >> 20} MiB so far: "
                f"{error.strerror}; set TMPDIR to a directory that has"
            ) from error

    def _read(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], start: int) -> None:
        left: Bytes = array.view(np.uint8).reshape(-1)
        while left.size:
            count = os.preadv(self._file.fileno(), [left.data], start)
            start += count
            left = left[count:]
            if not count:
                raise CapacityError(f"the record in `{gettempdir()}` ends at byte {start}")
