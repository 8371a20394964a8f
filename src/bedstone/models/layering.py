"""Which layer of a model a tensor belongs to: read from the names that `models.body` gives."""

import re

_NUMBERED = re.compile(r"^l(\d+)\.|\.(\d+)(?=[.@]|$)")
"""`l3.q`, or the first number after a dot: `x.4`, `k.3@1`, `ring.q.3.0@1`."""


def layer_of(tensor: str) -> int | None:
    """The layer whose result a tensor is; None before the first one and after the last.

    The stream `x.{l}` that enters a layer is what the one before it made.
    """
    found = _NUMBERED.search(tensor)
    if found is None:
        return None
    layer = int(found[1] or found[2])
    if tensor.startswith("x."):
        layer -= 1
    return None if layer < 0 else layer
