"""JSON of a checkpoint's files, read strictly: it may come from anyone."""

import json
from pathlib import Path

from bedstone.checkpoint.regular import open_regular
from bedstone.errors import WeightError

FILE_LIMIT = 100_000_000
"""Bytes; the largest vocabularies take about a third of it."""


def parse_object(data: bytes, where: str) -> dict[str, object]:
    """Read one JSON object; a key given twice is refused, wherever it stands.

    Raises `WeightError` where the text is not UTF-8, not JSON, nested too deeply or not an object.
    """
    try:
        value = json.loads(data.decode(), object_pairs_hook=_unique)
        if b"\\ud" in data.lower():
            # A lone surrogate passes as JSON and then cannot be printed or hashed.
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise WeightError(f"`{where}` is nested too deeply") from error
    except ValueError as error:
        raise WeightError(f"`{where}` is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise WeightError(f"`{where}` holds a {type(value).__name__}, expected an object")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"key {name!r} twice in one object")
            seen.add(name)
    return members


def read_text(path: Path) -> bytes:
    """The bytes of a text file of bounded size.

    Raises `WeightError` where the file cannot be read or is larger than any such file should be.
    """
    try:
        with open_regular(path) as file:
            data = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise WeightError(f"`{path}` cannot be read: {error.strerror or error}") from error
    if len(data) > FILE_LIMIT:
        raise WeightError(f"`{path}` is larger than {FILE_LIMIT} bytes")
    return data


def read_object(path: Path) -> dict[str, object]:
    """The JSON object in the file at `path`."""
    return parse_object(read_text(path), str(path))
