"""Bytes that each call of a compiled package has to move: counted by its plan, not measured."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bedstone.build.costs import Cost
from bedstone.build.counting import launch_costs
from bedstone.build.lane import lane_of
from bedstone.build.request import is_package, open_weights, read_package
from bedstone.build.step import PlannedStep, form_graph
from bedstone.errors import BedstoneError
from bedstone.graph.step import FormName
from bedstone.lane.schedule import Numerics
from bedstone.prove.swap.workload import Limits, Turn
from bedstone.target.hardware import find_set, read_sets
from bedstone.verify.protocol import Protocol


@dataclass(frozen=True, slots=True)
class Step:
    """A step to count: its form, rows, and the position (1-based) that its last ones are at."""

    form: FormName
    rows: int
    at: int


def step_of(turn: Turn, known: Protocol, limits: Limits) -> Step:
    """What a turn is a step of."""
    shape = known.shape(turn.program)
    if shape is not None and shape.rows is None:
        return Step("chunk", turn.rows, turn.longest)
    form: FormName = "batch" if turn.program in limits.many else "decode"
    return Step(form, len(turn.leases), turn.longest)


def count_bytes(package: Path, steps: Sequence[Step]) -> dict[Step, tuple[int, ...]]:
    """Bytes of each call of each step; none where the package does not say what it is of."""
    if not is_package(package):
        return {}
    compiled = read_package(package)
    lock = compiled.lock
    try:
        lane = lane_of(find_set(lock.target, read_sets()), cast("Numerics", lock.numerics))
        opened = open_weights(compiled)
    except BedstoneError:  # a proof needs no count: what it was compiled of may be gone by now
        return {}
    found = {}
    with closing(opened):
        for step in steps:
            sampled = lock.sampling is not None
            graph = form_graph(opened, step.form, lock.context, step.rows, sampled=sampled)
            planned = PlannedStep(graph, lane.lower(graph), lane, lock.context)
            costs = launch_costs(planned, step.at)
            found[step] = tuple(Cost.of([cost]).nbytes for cost in costs)
    return found
