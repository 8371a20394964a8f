"""Small trees of kernels, written for one test."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

MODULES = "modules"
"""The folder in a cache that holds compiled modules, as the command line keeps them."""

MODEL = '[routing]\nmodel_types = [{ model_type = "llama" }]\n'


def hardware(
    name: str, *, vendor: str = "cpu", arch: str = "generic", inherits: str = "", more: str = ""
) -> dict[str, str]:
    """The record of a hardware set, as a file of a tree."""
    parent = f'inherits = "{inherits}"\n' if inherits else ""
    text = f'[hardware]\nname = "{name}"\nvendor = "{vendor}"\narch = "{arch}"\n{parent}{more}'
    return {f"{name}/HARDWARE.toml": text}


def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the whole session, shared by all workers and with the tests of the kernels."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if base.name.startswith("popen-") else base
    (base / "kernels").mkdir(exist_ok=True)
    with suppress(FileExistsError):
        (base / MODULES).symlink_to(base / "kernels")
    return base


def write_tree(root: Path, *files: Mapping[str, str]) -> Path:
    """Write files by their path in the tree; the tree's own folder."""
    kernels = root / "kernels"
    for each in files:
        for name, text in each.items():
            path = kernels / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return kernels
