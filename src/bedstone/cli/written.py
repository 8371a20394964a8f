"""Files a user names for a command's result: whole, or as they were."""

import os
import tempfile
from pathlib import Path

from bedstone.errors import CallerError


def require_writable(path: Path) -> None:
    """Refuse what no result can be written to, before there is one.

    Raises `CallerError`: it is a directory, or lies in none.
    """
    if path.is_dir():
        raise CallerError(f"`{path}` cannot be written: it is a directory")
    if not path.parent.is_dir():
        raise CallerError(f"`{path}` cannot be written: `{path.parent}` is no directory")


def write_file(path: Path, text: str) -> None:
    """Write beside the place, then rename; what a link or a device names is written through it.

    Raises `CallerError`: it cannot be written.
    """
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, encoding="utf-8")
            return
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as scratch:
            made = Path(scratch) / path.name
            made.write_text(text, encoding="utf-8")
            os.replace(made, path)
    except OSError as error:
        raise CallerError(f"`{path}` cannot be written: {error.strerror or error}") from error
