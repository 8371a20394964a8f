"""`plan`: a step graph in, a schedule out.

The passes, each a function of its inputs: check, optimize (the shared table under the shim), order,
views, link, forms, sequences, rows a warp, buffers, verify.
"""

from collections.abc import Collection

from bedstone.graph.step import StepGraph
from bedstone.lane.arena import place_buffers
from bedstone.lane.body import Body
from bedstone.lane.check import require_graph, require_lowerable, require_names
from bedstone.lane.errors import ScheduleError
from bedstone.lane.facts import Facts, Knobs
from bedstone.lane.forms import Forms
from bedstone.lane.lower import link_body
from bedstone.lane.optimize import Optimizer
from bedstone.lane.schedule import Numerics, Schedule
from bedstone.lane.sequences import Joined, join_sequences
from bedstone.lane.shim import Shim
from bedstone.lane.table import TABLE
from bedstone.lane.verify import verify
from bedstone.lane.warps import widen
from bedstone.library.coding import INT8, Coding

OWN = "gemv_parts"
"""The lane's own rule in the shared table."""

RULES: tuple[str, ...] = (
    *(rule.name for rule in TABLE if rule.name != OWN),
    "rows_a_warp",
    OWN,
    "sequences",
)
"""The steps of the lane that a plan can hold back: rules of the table, steps of the schedule."""


def plan(
    graph: StepGraph,
    *,
    numerics: Numerics,
    shim: Shim,
    knobs: Knobs | None = None,
    coding: Coding = INT8,
    held: Collection[str] = (),
) -> Schedule:
    """The schedule of `graph` on the lane that `shim` answers for, without the rules `held` names.

    The same arguments give the same schedule. A graph that no lane can lower, or an unknown name in
    `numerics` or `held`, is a `CallerError`; an op without a launch on this lane a `NoLaunchError`.
    """
    require_names(numerics, held, RULES)
    knobs = knobs or Knobs()
    require_graph(graph, knobs.max_chunk)
    facts = Facts.of(graph, numerics, knobs, coding)
    require_lowerable(facts)
    optimizer = Optimizer(Body(facts), shim, held)
    optimizer.run()
    schedule = _lowered(optimizer, shim)
    faults = verify(schedule, facts, shim)
    if faults:
        raise ScheduleError(graph.model, faults)
    return schedule


def _lowered(optimizer: Optimizer, shim: Shim) -> Schedule:
    """The schedule of an optimized body."""
    body, facts, held = optimizer.body, optimizer.body.facts, optimizer.held
    linked, views = link_body(body, shim)
    joined = Joined(Forms(linked, facts, shim, views).chosen(), ())
    if facts.graph.form == "batch" and "sequences" not in held:
        joined = join_sequences(joined.steps, facts, views, shim)
    steps = joined.steps
    if "rows_a_warp" not in held:
        steps = widen(steps, facts.knobs.wide_outputs)
    arena = place_buffers(steps, facts, views, joined.stacks)
    graph = facts.graph
    return Schedule(
        model=graph.model,
        form=graph.form,
        numerics=facts.numerics,
        coding=facts.coding,
        rows=graph.rows,
        row_param=graph.row_param,
        steps=steps,
        buffers=arena.buffers,
        fusions=tuple(optimizer.fusions),
        misses=optimizer.misses(),
        arena_bytes=arena.nbytes,
        unshared_bytes=arena.unshared,
        consts=graph.consts,
        tables=graph.tables,
        carried=graph.carried,
        ropes=graph.ropes,
        params=graph.params,
        outputs=graph.outputs,
    )
