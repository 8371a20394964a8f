"""Manifests that fit the serving protocol, and what becomes of them by a change."""

import json

from bedstone.spec.codec import parse_value
from bedstone.verify import verify
from conformance_cases import accepted_text, patched

PAGED, RECURRENT, SPECULATIVE, PEERS = (
    "04_paged_serving",
    "05_recurrent",
    "06_speculative",
    "07_peers",
)


def changed(base, *mutations):
    """A verified manifest: an accepted one after `op path value` mutations."""
    steps = [
        {"op": op, "path": path, **({"value": value[0]} if value else {})}
        for op, path, *value in mutations
    ]
    return verify(parse_value(patched(json.loads(accepted_text(base)), steps)))
