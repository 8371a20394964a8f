"""Writing a directory whole: beside its place, then renamed, so that nobody sees half of it."""

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bedstone.errors import CallerError


def write_directory(out: Path, files: Mapping[str, bytes], *, owned: str) -> None:
    """Write `files` (relative path → contents) as the directory `out`.

    A directory that stands at `out` is replaced when it is empty or holds `owned`, the file that
    says it was written here.

    Raises `CallerError`: something else stands at `out`, or the place cannot be written.
    """
    require_replaceable(out, owned)
    with _told(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
            made = Path(scratch) / "made"
            for name, data in files.items():
                path = made / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            _swap(made, out, Path(scratch) / "old")


def require_replaceable(out: Path, owned: str) -> None:
    """Refuse a place that holds something else, before there is something to put there.

    Raises `CallerError`: what stands at `out` is not empty and lacks `owned`.
    """
    with _told(out):
        found = _standing(out)
    if found and owned not in found:
        raise CallerError(f"`{out}` exists and is no package: choose another directory")


def _standing(out: Path) -> list[str]:
    """The names in a directory; `.` where another kind of file stands there."""
    try:
        with _opened(out) as directory:
            names = os.listdir(directory)
            # one that has gone meanwhile was replaced by a process that had looked too
            stays = os.path.samestat(os.fstat(directory), os.stat(out))
            return names if stays else []
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return ["."]


@contextmanager
def _told(out: Path) -> Iterator[None]:
    """Whatever the system refuses here is said of `out`: a `CallerError`."""
    try:
        yield
    except OSError as error:
        raise CallerError(f"`{out}` cannot be written: {error.strerror or error}") from error


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    """The directory itself, whatever comes to stand in its place."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def _swap(made: Path, out: Path, old: Path) -> None:
    """Put `made` at `out`, unless another process does the same at the same time.

    What stood there goes to `old`, and back where `made` cannot take its place.
    """
    with suppress(FileNotFoundError):
        os.replace(out, old)
    try:
        os.replace(made, out)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            return
        if old.exists():
            os.replace(old, out)
        raise
