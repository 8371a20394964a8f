"""Writing a directory whole: beside its place, then renamed, so that nobody sees half of it."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bedstone.errors import CallerError


def write_directory(out: Path, files: Mapping[str, bytes], *, owned: str) -> None:
    """Write `files` (relative path → contents) as the directory `out`.

    A directory that stands at `out` is replaced when it is empty or holds `owned`, the file that
    says it was written here.

    Raises `CallerError`: something else stands at `out`, or the place cannot be written.
    """
    try:
        _require_replaceable(out, owned)
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
            made = Path(scratch) / "made"
            for name, data in files.items():
                path = made / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            _swap(made, out, Path(scratch) / "old")
    except OSError as error:
        raise CallerError(f"`{out}` cannot be written: {error.strerror or error}") from error


def _require_replaceable(out: Path, owned: str) -> None:
    if not out.exists():
        return
    if not out.is_dir() or (any(out.iterdir()) and not (out / owned).exists()):
        raise CallerError(f"`{out}` exists and is no package: choose another directory")


def _swap(made: Path, out: Path, old: Path) -> None:
    """Put `made` at `out`; another process may be doing the same with the same contents."""
    if out.exists():
        os.replace(out, old)
    try:
        os.replace(made, out)
    except OSError:
        if not out.is_dir():
            raise
        shutil.rmtree(made)
