"""What a package was compiled for, and what a user should know of it."""

from pathlib import Path

from bedstone.spec.file import read_bounded
from bedstone.spec.package import TARGET, Target, parse_target


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
