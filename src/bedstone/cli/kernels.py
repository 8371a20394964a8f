"""Whether the files of a manifest's modules are the ones it pins.

`bedstone run` finds a module by the hash of its bytes alone. `verify` asks more: a file that stands
where the manifest says, or bears the module's hash in its name, must have the bytes.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from bedstone.errors import KernelError
from bedstone.spec.manifest import Module

_LABEL_DIGITS = 12
_READ_BYTES = 1 << 20

State = Literal["found", "changed", "missing", "unchecked"]


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """What was found of a module.

    `expected` and `actual` are sha256 in lower case hex; `actual` None where no file was hashed.
    `unchecked`: nobody named a folder and no file stands where the manifest says.
    """

    module: str
    state: State
    expected: str
    actual: str | None
    path: str | None

    @property
    def good(self) -> bool:
        """Whether the module does not speak against the manifest."""
        return self.state in {"found", "unchecked"}

    def __str__(self) -> str:
        if self.state == "changed":
            return (
                f"module `{self.module}`: `{self.path}` has sha256 {self.actual}, expected "
                f"{self.expected}; the file changed after the manifest was written"
            )
        if self.state == "missing":
            return (
                f"module `{self.module}`: no file with sha256 {self.expected} in `{self.path}`; "
                f"copy it there or compile again"
            )
        return f"module `{self.module}`: {self.path or 'not looked for'}"

    def json(self) -> dict[str, str | None]:
        """The JSON object of a report."""
        return asdict(self)


@dataclass(slots=True)
class Folder:
    """A folder of kernels, each file hashed once, when first asked for.

    `named` says that somebody named it, so that every module must be in it.
    """

    path: Path
    named: bool
    _hashes: dict[Path, str] = field(default_factory=dict)

    def check(self, name: str, module: Module) -> ModuleFile:
        """What the folder holds of a module."""
        expected = module.sha256.lower()
        standing = self._standing(module.source) or self._labelled(expected)
        if standing is not None:
            actual = self._hash(standing)
            state: State = "found" if actual == expected else "changed"
            return ModuleFile(name, state, expected, actual, str(standing))
        if not self.named:
            return ModuleFile(name, "unchecked", expected, None, None)
        found = next((path for path in self._files() if self._hash(path) == expected), None)
        if found is not None:
            return ModuleFile(name, "found", expected, expected, str(found))
        return ModuleFile(name, "missing", expected, None, str(self.path))

    def _standing(self, source: str) -> Path | None:
        """The file that `source` names inside the folder; a source is untrusted."""
        if "\0" in source or "://" in source:
            return None
        root = self.path.resolve()
        path = (root / source).resolve()
        inside = path.is_relative_to(root) and len(source) < 1024
        return self.path / source if inside and path.is_file() else None

    def _labelled(self, expected: str) -> Path | None:
        label = expected[:_LABEL_DIGITS]
        return next((path for path in self._files() if label in path.name), None)

    def _files(self) -> Iterator[Path]:
        if self.named:
            yield from sorted(path for path in self.path.rglob("*") if path.is_file())

    def _hash(self, path: Path) -> str:
        if path not in self._hashes:
            self._hashes[path] = _sha256(path)
        return self._hashes[path]


def check_modules(modules: Mapping[str, Module], folder: Folder) -> list[ModuleFile]:
    """Look for every module.

    Args:
        modules: The manifest's, by name.
        folder: Where their files are.

    Returns:
        What was found of each, by name.

    Raises:
        KernelError: a named folder does not exist, or a file in it cannot be read.
    """
    if modules and folder.named and not folder.path.is_dir():
        raise KernelError(f"`{folder.path}` is not a folder of kernels")
    return [folder.check(name, module) for name, module in sorted(modules.items())]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_READ_BYTES):
                digest.update(block)
    except OSError as error:
        raise KernelError(f"`{path}` cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()
