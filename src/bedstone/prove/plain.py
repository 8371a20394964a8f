"""Values as JSON has them."""

import math
from typing import Any


def plain(value: Any) -> Any:  # noqa: ANN401  (any JSON value)
    """JSON has no infinity: a string stands for it."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
