"""Files read into memory that is at hand, each opened once."""

import ctypes
import os
import threading
from contextlib import ExitStack
from pathlib import Path

from bedstone.errors import WeightError


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
        descriptor = self._descriptor(path)
        target = memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
        while target:
            try:
                count = os.preadv(descriptor, [target], offset)
            except OSError as error:
                raise WeightError(f"`{path}` cannot be read: {error.strerror or error}") from error
            if count == 0:
                raise WeightError(
                    f"`{path}` ends {len(target)} bytes before a tensor does: the file changed "
                    "after it was opened"
                )
            target, offset = target[count:], offset + count

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
