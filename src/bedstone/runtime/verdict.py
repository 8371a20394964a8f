"""A manifest's verdict, kept: one text that was found sound is not judged again.

What is kept is that a text keeps every rule, nothing else of it: the text is read and parsed anew
each time, and modules are hashed anew. A verdict is a file whose name and contents are the sha256
of all that decided it, which is the text's bytes, every source file of the verifier and of the
types it reads, and Python's version. Any difference, any doubt about the file, and the rules are
applied.

A package cannot bring a verdict: only the cache is looked in. Whoever writes there as this user can
say what they like of a manifest, as they can put another replayer beside it. So it counts only
where nobody else can write: a directory and a file of this user that no group and no other may
change, and no link.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import bedstone.spec
import bedstone.verify
from bedstone.spec.manifest import Manifest
from bedstone.verify.verified import SEAL, Verified

VERDICTS = "verdicts"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_JUDGES = (bedstone.spec, bedstone.verify)


def recalled(manifest: Manifest, text: bytes, cache: Path | None) -> Verified:
    """The manifest of a text with the proof that it keeps every rule, perhaps from an earlier load.

    Raises `ManifestError`: it breaks one.
    """
    key = verdict_key(text)
    if cache is None or key is None:
        return judged(manifest)
    kept = cache / VERDICTS / key
    if _recalls(kept):
        return Verified(manifest, SEAL)
    proof = judged(manifest)
    # a cache that cannot be written costs the next load its time
    with suppress(OSError):
        _keep(kept)
    return proof


def verdict_key(text: bytes) -> str | None:
    """Hex sha256 of all that decides the verdict on a text; None where there are no sources."""
    digest = hashlib.sha256(f"{sys.version}\0".encode())
    count = 0
    for package in _JUDGES:
        root = Path(next(iter(package.__path__)))
        for name, data in _sources(root, package.__name__):
            count += 1
            digest.update(f"{name}\0{len(data)}\0".encode())
            digest.update(data)
    digest.update(text)
    return digest.hexdigest() if count else None


def _sources(folder: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Every source below a folder, by name: what an import would run."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        name = f"{prefix}/{entry.name}"
        if entry.name.endswith(".py"):
            with open(entry.path, "rb", buffering=0) as file:
                yield name, file.read()
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _sources(Path(entry.path), name)


def judged(manifest: Manifest) -> Verified:
    """The manifest with the proof, by the rules.

    Raises `ManifestError`: it breaks one.
    """
    from bedstone.verify import verify  # noqa: PLC0415 - the rules take a while to load

    return verify(manifest)


def _recalls(kept: Path) -> bool:
    """Whether a verdict is there, whole, and nobody but this user can have put it there."""
    try:
        folder = os.lstat(kept.parent)
        descriptor = os.open(kept, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        held = os.fstat(descriptor)
        own = stat.S_ISDIR(folder.st_mode) and _is_own(folder) and _is_own(held)
        if not (own and stat.S_ISREG(held.st_mode)):
            return False
        return os.read(descriptor, len(kept.name) + 1) == kept.name.encode()
    finally:
        os.close(descriptor)


def _is_own(entry: os.stat_result) -> bool:
    return entry.st_uid == os.geteuid() and not entry.st_mode & _OTHERS


def _keep(kept: Path) -> None:
    """Write beside the place, then rename: nobody sees half a verdict."""
    kept.parent.parent.mkdir(parents=True, exist_ok=True)
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    made = kept.with_name(f"{kept.name}.{os.getpid()}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(kept.name.encode())
        os.replace(made, kept)
    except OSError:
        os.unlink(made)
        raise
