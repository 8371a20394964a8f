"""Where compiled code is kept between runs, unless a caller names another place."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bedstone.errors import CallerError


def user_cache() -> Path:
    """`bedstone` in the user's `.cache`.

    Raises `CallerError`: the user has no home.
    """
    try:
        return Path.home() / ".cache" / "bedstone"
    except RuntimeError as error:
        raise CallerError(
            "there is no home directory to keep compiled code in: name a cache directory "
            "(`BEDSTONE_CACHE`, or `cache=` from Python)"
        ) from error


def made_once(path: Path, make: Callable[[], None]) -> Path:
    """`path`, where `make` puts it unless it is there: processes that want it at once make one."""
    if not path.exists():
        with only_one(path):
            if not path.exists():
                make()
    return path


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold what is to become `path` alone, among processes and threads, until it is made.

    The system takes the lock from a holder that dies. Where a lock cannot be had all go on at once:
    each puts its own there whole, and they are the same.
    """
    lock = path.with_name(f".{path.name}.lock")
    handle = None
    with suppress(OSError):
        handle = _locked(lock)
    try:
        yield
    finally:
        if handle is not None:
            with suppress(OSError):
                os.unlink(lock)
            os.close(handle)


def _locked(lock: Path) -> int:
    """The lock's file, open and held: one that a holder has removed meanwhile locks nobody out."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with ExitStack() as undo:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            undo.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(lock)):
                    undo.pop_all()
                    return handle


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the place, then rename: nobody sees half a file.

    Raises `CallerError`: the directory cannot be written.
    """
    import tempfile  # noqa: PLC0415 - slow to load, and most runs write nothing

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".build-") as scratch:
            made = Path(scratch) / path.name
            made.write_bytes(data)
            os.replace(made, path)
    except OSError as error:
        raise unwritable(path.parent, error) from error


def require_cache(folder: Path) -> None:
    """Refuse a place where nothing can be kept, before there is something to keep.

    Raises `CallerError`: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise unwritable(folder, error) from error


def unwritable(folder: Path, error: OSError) -> CallerError:
    """That nothing can be kept in a folder, and what to do."""
    return CallerError(
        f"cache directory `{folder}` cannot be written: {error.strerror or error}; name another "
        "(`BEDSTONE_CACHE`, or `cache=` from Python)"
    )
