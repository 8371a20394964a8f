"""Where compiled code is kept between runs, unless a caller names another place."""

import errno
import os
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
