"""Weights from files to the device: read in parallel, copied as they arrive.

Each reader has a stream and two page-locked blocks: while one is copied to the device the other is
filled by a positional read. Reading a mapped file instead would fault page by page, several times
slower than the bus.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass

from bedstone.runtime.cuda.driver import Driver
from bedstone.runtime.device import RowCopy, Stored, Upload
from bedstone.runtime.files import Files

BLOCK_BYTES = 4 * 2**20
_BLOCKS = 2
_READERS = 12
_TELL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an upload whose span in the tensor fits a block.

    `span` bytes from `source` on hold `rows` rows of `width` bytes, `source_pitch` apart.
    """

    stored: Stored
    source: int
    span: int
    source_pitch: int
    address: int
    target_pitch: int
    rows: int
    width: int


def plan_pieces(uploads: Sequence[Upload], block: int) -> Iterator[Piece]:
    """Uploads cut so that each piece's span is `block` bytes at most, in the order given."""
    for upload in uploads:
        if not upload.nbytes:
            continue
        if upload.rows > 1 and upload.source_pitch <= block:
            yield from _by_rows(upload, block)
        else:
            for row in range(upload.rows):
                yield from _by_bytes(upload, row, block)


def _by_rows(upload: Upload, block: int) -> Iterator[Piece]:
    """Whole rows, as many as a block holds."""
    most = max(1, (block - upload.width) // upload.source_pitch + 1)
    for row in range(0, upload.rows, most):
        rows = min(most, upload.rows - row)
        yield Piece(
            stored=upload.stored,
            source=upload.source + row * upload.source_pitch,
            span=(rows - 1) * upload.source_pitch + upload.width,
            source_pitch=upload.source_pitch,
            address=upload.address + row * upload.target_pitch,
            target_pitch=upload.target_pitch,
            rows=rows,
            width=upload.width,
        )


def _by_bytes(upload: Upload, row: int, block: int) -> Iterator[Piece]:
    """Parts of one row."""
    source = upload.source + row * upload.source_pitch
    address = upload.address + row * upload.target_pitch
    for start in range(0, upload.width, block):
        width = min(block, upload.width - start)
        yield Piece(
            stored=upload.stored,
            source=source + start,
            span=width,
            source_pitch=width,
            address=address + start,
            target_pitch=width,
            rows=1,
            width=width,
        )


class Uploader:
    """Carries out uploads on a device."""

    def __init__(self, driver: Driver, readers: int | None = None) -> None:
        self._driver = driver
        self._readers = readers or min(_READERS, len(os.sched_getaffinity(0)))

    def run(self, uploads: Sequence[Upload], done: Callable[[int], None]) -> None:
        """Copy everything, and tell how many bytes have arrived from time to time.

        Raises `WeightError`: a file has become shorter.
        """
        planned = list(plan_pieces(uploads, BLOCK_BYTES))
        if not planned:
            return
        pieces = _Queue(iter(planned), max(piece.span for piece in planned))
        readers = min(self._readers, len(planned))
        with ExitStack() as held, ThreadPoolExecutor(readers) as pool:
            files = Files(held)
            working = {pool.submit(self._read, pieces, files) for _ in range(readers)}
            try:
                _watch(working, pieces, done)
            finally:
                pieces.stop()

    def _read(self, pieces: "_Queue", files: Files) -> None:
        """One reader: pieces until there are no more."""
        self._driver.enter()
        with ExitStack() as held:
            stream = self._driver.stream()
            held.callback(self._driver.end_stream, stream)
            blocks = []
            for _ in range(_BLOCKS):
                block, event = self._driver.alloc_host(pieces.largest), self._driver.event()
                held.callback(self._driver.free_host, block)
                held.callback(self._driver.end_event, event)
                blocks.append((block, event))
            held.callback(self._driver.sync, stream)
            turn = 0
            while (piece := pieces.take()) is not None:
                block, event = blocks[turn % _BLOCKS]
                self._driver.wait(event)
                _read(files, piece, block)
                self._copy(piece, block, stream)
                self._driver.record(event, stream)
                pieces.finished(piece)
                turn += 1

    def _copy(self, piece: Piece, block: int, stream: int) -> None:
        if piece.rows == 1:
            self._driver.copy_in(piece.address, block, piece.width, stream)
            return
        rows = RowCopy(
            block, piece.source_pitch, piece.address, piece.target_pitch, piece.rows, piece.width
        )
        self._driver.copy_rows(rows, stream)


class _Queue:
    """Pieces for readers to take, and bytes of those they are done with."""

    def __init__(self, pieces: Iterator[Piece], largest: int) -> None:
        self._pieces = pieces
        self.largest = largest
        self._lock = threading.Lock()
        self.arrived = 0

    def take(self) -> Piece | None:
        """The next piece, None after the last."""
        with self._lock:
            return next(self._pieces, None)

    def stop(self) -> None:
        """Give out no more pieces."""
        with self._lock:
            self._pieces = iter(())

    def finished(self, piece: Piece) -> None:
        """Count a piece that is on its way."""
        with self._lock:
            self.arrived += piece.rows * piece.width


def _read(files: Files, piece: Piece, block: int) -> None:
    """A piece's span into the memory at `block`."""
    if piece.stored.file is None:
        view = piece.stored.view[piece.source : piece.source + piece.span]
        ctypes.memmove(block, view.ctypes.data, piece.span)
        return
    path, start = piece.stored.file
    files.read(path, start + piece.source, block, piece.span)


def _watch(working: set[Future[None]], pieces: _Queue, done: Callable[[int], None]) -> None:
    """Tell of progress until every reader is through; the first that failed is raised."""
    while working:
        ended, working = wait(working, _TELL_SECONDS, FIRST_COMPLETED)
        for future in ended:
            future.result()
        done(pieces.arrived)
