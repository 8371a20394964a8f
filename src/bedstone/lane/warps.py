"""Four rows a warp: in a wide product a warp computes four outputs, which reads the input once."""

from dataclasses import replace

from bedstone.lane.launch import GemmPart, Glu, Launch, Parts, Product
from bedstone.lane.schedule import Step

WIDE = 4
"""The outputs that one warp of a wide product computes."""


def widen(steps: tuple[Step, ...], wide_outputs: int) -> tuple[Step, ...]:
    """The steps with every product of at least `wide_outputs` outputs computed four at a time."""
    return tuple(replace(step, launch=_widened(step.launch, wide_outputs)) for step in steps)


def _widened(launch: Launch, wide_outputs: int) -> Launch:
    match launch:
        case Product(m=m):
            return replace(launch, rows_a_warp=_rows(m.n, wide_outputs))
        case Glu(gate=gate):
            return replace(launch, rows_a_warp=_rows(gate.n, wide_outputs))
        case Parts(parts=parts):
            return replace(launch, parts=tuple(_part(part, wide_outputs) for part in parts))
        case _:
            return launch


def _part(part: GemmPart, wide_outputs: int) -> GemmPart:
    return replace(part, rows_a_warp=_rows(part.m.n, wide_outputs))


def _rows(outputs: int, wide_outputs: int) -> int:
    return WIDE if outputs >= wide_outputs and outputs % WIDE == 0 else 1
