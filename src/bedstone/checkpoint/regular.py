"""Opening a checkpoint's files: whoever made the directory may have put anything there."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from bedstone.errors import WeightError


def open_regular(path: Path) -> BinaryIO:
    """Open a file to be read; a pipe without a writer or a device would never end.

    Raises `WeightError`: it cannot be opened, or is no regular file.
    """
    try:
        # without a wait for the other end of a pipe
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise WeightError(f"`{path}` cannot be read: {error.strerror or error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WeightError(f"`{path}` cannot be read: it is no regular file")
    return os.fdopen(descriptor, "rb")
