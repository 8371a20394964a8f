"""A manifest in any form a caller has it, judged."""

from collections.abc import Mapping
from pathlib import Path

from bedstone.spec.codec import parse, parse_value
from bedstone.spec.fault import Fault, ParseError
from bedstone.spec.file import read_bounded
from bedstone.verify.verdict import check as check_manifest


def check(manifest: str | bytes | Mapping[str, object] | Path) -> list[Fault]:
    """Every fault of a manifest, in a stable order; empty when it is accepted.

    `manifest` is its JSON text, the same text as UTF-8 bytes, the decoded object, or a file's path.
    One that does not parse has one fault: parsing stops at the first.
    """
    try:
        if isinstance(manifest, Mapping):
            parsed = parse_value(manifest)
        else:
            parsed = parse(read_bounded(manifest) if isinstance(manifest, Path) else manifest)
    except ParseError as error:
        return [error.fault]
    return check_manifest(parsed)
