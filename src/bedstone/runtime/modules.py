"""Kernel modules found by the sha256 of their bytes.

A file's name and its folder's order mean nothing. Every file is read once; the bytes that were
hashed are the bytes a device loads, so a file that changes afterwards changes nothing.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bedstone.errors import KernelError
from bedstone.spec.manifest import Module

_LABEL_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Artifact:
    """A module's bytes; `sha256` is theirs, in lower case hex."""

    module: str
    sha256: str
    path: Path
    data: bytes = field(repr=False)


def resolve_modules(
    modules: Mapping[str, Module],
    directory: Path | None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, Artifact]:
    """The bytes of every module, by module name.

    Raises `KernelError`: a module's hash is that of no file in `directory`.
    """
    if not modules:
        return {}
    wanted = {module.sha256.lower() for module in modules.values()}
    found, hashes = _read_wanted(_files(directory), wanted, progress)
    resolved: dict[str, Artifact] = {}
    for name, module in modules.items():
        sha256 = module.sha256.lower()
        if sha256 not in found:
            raise KernelError(_missing(name, sha256, directory, hashes))
        path, data = found[sha256]
        resolved[name] = Artifact(name, sha256, path, data)
    return resolved


def _files(directory: Path | None) -> list[Path]:
    if directory is None or not directory.is_dir():
        return []
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _read_wanted(
    paths: list[Path], wanted: set[str], progress: Callable[[int, int], None]
) -> tuple[dict[str, tuple[Path, bytes]], dict[Path, str]]:
    """The wanted files by hash with their bytes, and the hash of every file."""
    found: dict[str, tuple[Path, bytes]] = {}
    hashes: dict[Path, str] = {}
    for done, path in enumerate(paths):
        progress(done, len(paths))
        try:
            data = path.read_bytes()
        except OSError as error:
            raise KernelError(f"`{path}` cannot be read: {error.strerror or error}") from error
        hashes[path] = hashlib.sha256(data).hexdigest()
        if hashes[path] in wanted:
            found[hashes[path]] = (path, data)
    progress(len(paths), len(paths))
    return found, hashes


def _missing(name: str, sha256: str, directory: Path | None, hashes: Mapping[Path, str]) -> str:
    wants = f"module `{name}` with sha256 {sha256}"
    if directory is None:
        return f"{wants} needs a kernels directory and none was given"
    if not directory.is_dir():
        return f"{wants} is looked for in `{directory}`, which is not a directory"
    for path, actual in hashes.items():
        if sha256[:_LABEL_DIGITS] in path.name:
            return (
                f"{wants}: `{path}` bears its name but has sha256 {actual}; the file changed after "
                "it was compiled, compile the package again"
            )
    return (
        f"{wants} is none of the {len(hashes)} file(s) in `{directory}`; copy the file with these "
        "bytes there under any name, or compile the package again"
    )
