"""A schedule counted: launches by kind."""

from collections import Counter

from bedstone.lane.launch import Eltwise, Launch, Norm, Parts, Product, Rope
from bedstone.lane.schedule import GEMV_ROWS, Schedule


def kind(launch: Launch) -> str:
    """A launch's kind, as a census counts it."""
    match launch:
        case Product(rows=rows):
            return "gemv" if rows <= GEMV_ROWS else "gemm"
        case Parts(rows=rows):
            return "gemv_parts" if rows <= GEMV_ROWS else "gemm_parts"
        case Norm(add=add):
            return "norm" if add is None else "add_norm"
        case Rope(sides=sides):
            return "rope" if len(sides) == 1 else "rope_parts"
        case Eltwise(fn=fn):
            return fn
        case _:
            return _KINDS[type(launch).__name__]


_KINDS = {
    "Embed": "embed",
    "Quantize": "quantize",
    "Glu": "glu",
    "SetRows": "set_rows",
    "Attention": "attention",
    "TakeRow": "take_row",
    "ArgMax": "argmax",
}


def census(schedule: Schedule) -> Counter[str]:
    """How many launches of each kind a run of the step makes."""
    return Counter(kind(step.launch) for step in schedule.steps)
