"""Lines added to a file that others add to as well, and that a kill may cut short anywhere.

Who adds holds the file's lock. A last line without its end was cut short: it is dropped by the next
who adds, and skipped by who reads. So a line that was added whole stays, whatever happens after.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bedstone.errors import CallerError

_BLOCK = 1 << 16


def append_lines(path: Path, lines: list[str]) -> None:
    """Add whole lines at the end of a file, which is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{line}\n" for line in lines).encode()
    with _locked(path) as descriptor:
        if _mend(descriptor):
            data = b"\n" + data
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.fsync(descriptor)


def read_lines(path: Path) -> list[str]:
    """Read the lines that were added whole."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CallerError(f"`{path}` cannot be read: {error.strerror or error}") from error
    whole, end, tail = data.rpartition(b"\n")
    kept = whole + end + (tail if _is_json(tail) else b"")
    return [line for line in kept.decode(errors="replace").split("\n") if line.strip()]


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise CallerError(f"`{path}` cannot be written: {error.strerror or error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _mend(descriptor: int) -> bool:
    """Drop a last line cut short; whether it is whole and only lacks its end."""
    size = os.fstat(descriptor).st_size
    tail = _tail(descriptor, size)
    if not tail:
        return False
    if _is_json(tail):
        return True
    os.ftruncate(descriptor, size - len(tail))
    return False


def _tail(descriptor: int, size: int) -> bytes:
    """What follows the last end of a line."""
    tail = b""
    while len(tail) < size:
        begin = max(0, size - len(tail) - _BLOCK)
        block = os.pread(descriptor, size - len(tail) - begin, begin)
        cut = block.rfind(b"\n")
        tail = block[cut + 1 :] + tail
        if cut >= 0:
            break
    return tail


def _is_json(data: bytes) -> bool:
    """Whether a line is a whole object: one cut short never is."""
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False
