"""Files read into memory that is at hand, each opened once."""

import ctypes
import os
import threading
from collections import deque
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from bedstone.errors import WeightError

_MOST_TARGETS = 1024


class Files:
    """Files open for reading, by any threads; closed with `held`."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._lock = threading.Lock()
        self._open: dict[Path, int] = {}

    def read(self, path: Path, offset: int, address: int, nbytes: int) -> None:
        """Bytes [offset, offset + nbytes) of a file to `address`.

        Raises `WeightError`: the file is gone or ends before.
        """
        self.scatter(path, offset, [view_at(address, nbytes)])

    def scatter(self, path: Path, offset: int, targets: list[memoryview]) -> None:
        """The bytes of a file from `offset` on, to one target after the other until all are full.

        Raises `WeightError`: the file is gone or ends before.
        """
        descriptor = self._descriptor(path)
        left = deque(target for target in targets if target)
        while left:
            try:
                count = os.preadv(descriptor, list(islice(left, _MOST_TARGETS)), offset)
            except OSError as error:
                raise WeightError(f"`{path}` cannot be read: {error.strerror or error}") from error
            if count == 0:
                raise WeightError(
                    f"`{path}` ends {sum(map(len, left))} bytes before a tensor does: the file "
                    "changed after it was opened"
                )
            offset += count
            while count and count >= len(left[0]):
                count -= len(left.popleft())
            if count:
                left[0] = left[0][count:]

    def _descriptor(self, path: Path) -> int:
        with self._lock:
            if path not in self._open:
                try:
                    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                except OSError as error:
                    raise WeightError(
                        f"`{path}` cannot be read: {error.strerror or error}"
                    ) from error
                self._held.callback(os.close, descriptor)
                self._open[path] = descriptor
            return self._open[path]


def view_at(address: int, nbytes: int) -> memoryview:
    """Memory at an address, to be written."""
    return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
