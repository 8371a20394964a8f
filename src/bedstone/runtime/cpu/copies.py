"""Weights on their way from files to memory, while the loading thread does other things.

Reads leave no mapped page behind, and one system call fills many tensors: a thread that reads holds
up one that runs Python only between calls.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bedstone.runtime.cpu.memory import view_of
from bedstone.runtime.device import Upload
from bedstone.runtime.files import Files, view_at
from bedstone.runtime.weights import rows_of
from bedstone.spec.frozen import Frozen

BATCH = 32 * 1024 * 1024
"""Bytes of a file that one call reads at most."""

_GAP = 256


class _Read(Frozen):
    """Bytes of a file from `offset` on, to one target (address, bytes) after the other.

    A target without an address is a gap: what a file has between two tensors.
    """

    path: Path
    offset: int
    targets: tuple[tuple[int | None, int], ...]

    @property
    def end(self) -> int:
        return self.offset + sum(nbytes for _, nbytes in self.targets)


class Copies:
    """Copies by threads of their own, one fewer than `threads`, until `wait` or `close` returns.

    `done` is told how many bytes have arrived, by the thread that waits, which copies too.
    """

    def __init__(
        self, uploads: Sequence[Upload], threads: int, done: Callable[[int], None]
    ) -> None:
        self._done = done
        self._left: deque[_Read | Upload] = deque(plan_copies(uploads))
        self._arrived = 0
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._held = ExitStack()
        self._files = Files(self._held)
        self._threads = [
            threading.Thread(target=self._work, args=(_tell_nobody,), daemon=True)
            for _ in range(min(max(1, threads - 1), len(self._left)))
        ]
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Copy what nobody has begun to; return once everything is there.

        Raises `WeightError`: a file no longer holds what its header said.
        """
        self._work(self._done)
        self.close()
        if self._error is not None:
            raise self._error
        self._done(self._arrived)

    def close(self) -> None:
        """Begin no more copies, and return once none is under way."""
        self._left.clear()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._held.close()

    def _work(self, done: Callable[[int], None]) -> None:
        """Take copies until there are none left."""
        while True:
            try:
                copy = self._left.popleft()
            except IndexError:
                return
            try:
                nbytes = _carry_out(copy, self._files)
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                self._error = error
                self._left.clear()
                return
            with self._lock:
                self._arrived += nbytes
            done(self._arrived)


def _tell_nobody(_arrived: int) -> None:
    """The thread that waits tells."""


def plan_copies(uploads: Iterable[Upload]) -> Iterator[_Read | Upload]:
    """Runs of files joined to few reads, in the order of the files; what else there is as it is."""
    runs: list[_Read] = []
    for upload in uploads:
        if upload.nbytes and upload.rows == 1 and upload.stored.file is not None:
            path, start = upload.stored.file
            target = (upload.address, upload.width)
            runs.append(_Read(path, start + upload.source, (target,)))
        elif upload.nbytes:
            yield upload
    runs.sort(key=lambda run: (run.path, run.offset))
    for read in _joined(runs):
        yield from _split(read)


def _joined(runs: Sequence[_Read]) -> Iterator[_Read]:
    """Neighbours of one file, up to `BATCH` bytes, as one."""
    at = 0
    while at < len(runs):
        first = runs[at]
        targets, end = list(first.targets), first.end
        at += 1
        while at < len(runs) and _follows(runs[at], first, end):
            if runs[at].offset > end:
                targets.append((None, runs[at].offset - end))
            targets += runs[at].targets
            end = runs[at].end
            at += 1
        yield _Read(first.path, first.offset, tuple(targets))


def _follows(run: _Read, first: _Read, end: int) -> bool:
    near = run.path == first.path and 0 <= run.offset - end <= _GAP
    return near and run.end - first.offset <= BATCH


def _split(read: _Read) -> Iterator[_Read]:
    """A read of one long run as several."""
    ((address, nbytes), *more) = read.targets
    if more or address is None:
        yield read
        return
    for at in range(0, nbytes, BATCH):
        target = (address + at, min(BATCH, nbytes - at))
        yield _Read(read.path, read.offset + at, (target,))


def _carry_out(copy: _Read | Upload, files: Files) -> int:
    """Do one; the bytes that arrived."""
    if isinstance(copy, Upload):
        span = view_of(copy.address, (copy.rows - 1) * copy.target_pitch + copy.width)
        shape = (copy.rows, copy.width)
        target = np.lib.stride_tricks.as_strided(span, shape, (copy.target_pitch, 1))
        np.copyto(target, rows_of(copy))
        return copy.nbytes
    gap = bytearray(_GAP)
    targets = [
        memoryview(gap)[:nbytes] if address is None else view_at(address, nbytes)
        for address, nbytes in copy.targets
    ]
    files.scatter(copy.path, copy.offset, targets)
    return sum(nbytes for address, nbytes in copy.targets if address is not None)
