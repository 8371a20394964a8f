"""A set written beside its place and put there whole: nobody finds half of one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bedstone.errors import CallerError

_MARK = ".bedstone-export"
"""The file that tells a set that we wrote from any other folder; it lists what we wrote."""

_PARTS = frozenset({"definitions", "solutions", "workloads"})
"""What is replaced of a folder that others wrote."""


@contextmanager
def written_beside(place: Path) -> Iterator[Path]:
    """A new folder to fill, which is at `place` when the block ends without an error.

    Args:
        place: Where. Of a folder that is there, what we wrote before is replaced, or of another's
            its Definitions, Solutions and Workloads; everything else stays.

    Yields:
        Path: the folder to fill.

    Raises:
        CallerError: the folder, or the one around it, cannot be written.
    """
    place = place.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as scratch:
            new = Path(scratch) / "new"
            new.mkdir()
            yield new
            (new / _MARK).write_text("".join(f"{name}\n" for name in _files(new)))
            _put(new, place, Path(scratch) / "old")
    except OSError as error:
        raise CallerError(f"`{place}` cannot be written: {error.strerror or error}") from error


def require_replaceable(place: Path, *, replace: bool) -> None:
    """Require that a folder is not there, is empty, is a set that we wrote, or may be replaced.

    Anything else is a `CallerError`.
    """
    if place.exists() and not place.is_dir():
        raise CallerError(f"`{place}` is no folder")
    if replace or not place.exists() or (place / _MARK).is_file():
        return
    if any(place.iterdir()):
        raise CallerError(
            f"`{place}` holds something that was not exported: expected an empty folder, or none; "
            "`--replace` puts the set in place of the definitions, solutions and workloads there"
        )


def _put(new: Path, place: Path, old: Path) -> None:
    """Take along what is not replaced, then change both folders."""
    if not place.exists():
        new.rename(place)
        return
    ours = _written(place)
    for name in _files(place):
        if name not in ours and not (new / name).exists():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            # the same file, not another: somebody may be adding Traces to it
            os.link(place / name, new / name, follow_symlinks=False)
    place.rename(old)
    try:
        new.rename(place)
    except OSError:
        old.rename(place)
        raise


def _written(place: Path) -> set[str]:
    """The files that may be replaced."""
    mark = place / _MARK
    if mark.is_file():
        return {_MARK, *mark.read_text().splitlines()}
    return {name for name in _files(place) if Path(name).parts[0] in _PARTS}


def _files(folder: Path) -> list[str]:
    found = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(str(path.relative_to(folder)) for path in found)
