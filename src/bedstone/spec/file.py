"""The text of a manifest or of what lies beside it, read from a file that may be anything."""

from pathlib import Path

from bedstone.errors import ManifestError

FILE_BYTES = 64 * 2**20
"""The longest file that is read: a manifest of 2,500 calls takes under 4 MiB."""


def read_bounded(path: Path, limit: int = FILE_BYTES) -> bytes:
    """Read a whole file, unless it is longer than any manifest should be.

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
        raise ManifestError(f"`{path}` has more than {limit} bytes, which is as far as it is read")
    return text
