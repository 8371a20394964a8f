"""A package, or a manifest beside its kernels, as a command is given it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedstone.runtime.load import Parts


def parts_at(path: Path) -> "Parts":
    """The parts of a package directory, or of a manifest whose modules lie in its folder."""
    from bedstone.runtime.load import Parts, parse_manifest, read_parts
    from bedstone.spec.file import read_bounded

    if path.is_dir():
        return read_parts(path)
    return Parts(parse_manifest(read_bounded(path), str(path)), path.parent)
