"""A schedule counted: launches by kind."""

import re
from collections import Counter

from bedstone.lane.launch import (
    Conv,
    Eltwise,
    Launch,
    Norm,
    Parts,
    Product,
    Rope,
    Sequences,
    most_rows,
)
from bedstone.lane.schedule import GEMV_ROWS, Schedule


def kind(launch: Launch) -> str:
    """A launch's kind, as a census counts it."""
    match launch:
        case Sequences(whole=whole):
            word = kind(whole)
        case Product(rows=rows):
            word = "gemv" if most_rows(rows) <= GEMV_ROWS else "gemm"
        case Parts(rows=rows):
            word = "gemv_parts" if rows <= GEMV_ROWS else "gemm_parts"
        case Norm(add=add):
            word = "norm" if add is None else "add_norm"
        case Rope(sides=parts) | Conv(parts=parts):
            word = _word(launch) if len(parts) == 1 else f"{_word(launch)}_parts"
        case Eltwise(fn=fn):
            word = fn
        case _:
            word = _word(launch)
    return word


_SMALL = {"ArgMax": "argmax", "TopK": "topk"}


def _word(launch: Launch) -> str:
    """`SetRows` as `set_rows`."""
    name = type(launch).__name__
    return _SMALL.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def census(schedule: Schedule) -> Counter[str]:
    """How many launches of each kind a run of the step makes."""
    return Counter(kind(step.launch) for step in schedule.steps)
