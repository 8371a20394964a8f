"""Where compiled code is kept between runs, unless a caller names another place."""

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
        raise CallerError(
            f"cache directory `{path.parent}` cannot be written: {error.strerror or error}; name "
            "another (`BEDSTONE_CACHE`, or `cache=` from Python)"
        ) from error
