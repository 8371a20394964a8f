"""A manifest's text read from a file, which may be anything."""

from pathlib import Path

from bedstone.errors import ManifestError

MANIFEST_BYTES = 64 * 2**20
"""The longest manifest that is read: a program of 2,500 calls takes under 4 MiB."""


def read_manifest(path: Path, limit: int = MANIFEST_BYTES) -> bytes:
    """Read a manifest's file.

    Args:
        path: The file.
        limit: The most bytes it may have.

    Returns:
        Its bytes.

    Raises:
        ManifestError: it cannot be read, or has more than `limit` bytes.
    """
    try:
        with path.open("rb") as file:
            text = file.read(limit + 1)
    except OSError as error:
        raise ManifestError(f"`{path}` cannot be read: {error.strerror or error}") from error
    if len(text) > limit:
        raise ManifestError(f"`{path}` has more than {limit} bytes, the longest manifest accepted")
    return text
