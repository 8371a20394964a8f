"""What decides a package's bytes besides the checkpoint: Bedstone's own code and kernels."""

import hashlib
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parent.parent
_SUFFIXES = (".py", ".c", ".h", ".cu", ".cuh", ".toml")


def sources_digest(root: Path = PACKAGE_ROOT) -> str:
    """Hex sha256 over every source file of the installed package, names and contents."""
    digest = hashlib.sha256()
    files = (path for path in root.rglob("*") if path.suffix in _SUFFIXES)
    for path in sorted(files, key=lambda path: path.relative_to(root).as_posix()):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def package_key(*parts: str) -> str:
    """A directory name for the package made from `parts`."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
