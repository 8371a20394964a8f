"""What a package was compiled for, and what a user should know of it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.cli.guard import plain
from bedstone.spec.file import read_bounded
from bedstone.spec.package import TARGET, Target, parse_target
from bedstone.spec.release import VERSION, version_note

if TYPE_CHECKING:
    from bedstone.build.request import Package
    from bedstone.checkpoint.checkpoint import Checkpoint


def tell_notes(opened: "Checkpoint", package: "Package") -> None:
    """Say on stderr what the user should know of both and need not act on."""
    built = version_note(package.lock.bedstone, VERSION)
    # whoever moved a package may have left behind what no run needs
    known = (package.path / TARGET).is_file()
    served = borrowed_note(read_target(package.path)) if known else None
    for note in (*opened.notes, *filter(None, (built, served))):
        print(f"note: {plain(note)}", file=sys.stderr)


def read_target(package: Path) -> Target:
    """What a compile wrote into `package` beside the manifest; a `ManifestError` if nothing."""
    path = package / TARGET
    return parse_target(read_bounded(path), str(path))


def borrowed_note(target: Target) -> str | None:
    """That another model's record serves the checkpoint, if so."""
    if not target.borrowed:
        return None
    return (
        f"no match name of record `{target.model}` is in the checkpoint's name, so it runs with "
        "the policy of another model; `bedstone target explain` says why, `--target` pins"
    )
