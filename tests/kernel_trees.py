"""Small trees of kernels, written for one test."""

from collections.abc import Mapping
from pathlib import Path

MODEL = '[routing]\nmodel_types = [{ model_type = "llama" }]\n'


def hardware(
    name: str, *, vendor: str = "cpu", arch: str = "generic", inherits: str = "", more: str = ""
) -> dict[str, str]:
    """The record of a hardware set, as a file of a tree."""
    parent = f'inherits = "{inherits}"\n' if inherits else ""
    text = f'[hardware]\nname = "{name}"\nvendor = "{vendor}"\narch = "{arch}"\n{parent}{more}'
    return {f"{name}/HARDWARE.toml": text}


def write_tree(root: Path, *files: Mapping[str, str]) -> Path:
    """Write files by their path in the tree; the tree's own folder."""
    kernels = root / "kernels"
    for each in files:
        for name, text in each.items():
            path = kernels / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return kernels
