"""`plan`: a step graph in, a schedule out.

The passes, each a function of its inputs: check, optimize (the shared table under the shim), order,
views, link, forms, buffers, verify.
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
from bedstone.lane.shim import Shim
from bedstone.lane.table import TABLE
from bedstone.lane.verify import verify

RULES: tuple[str, ...] = tuple(rule.name for rule in TABLE)
"""The steps of the lane that a plan can hold back."""


def plan(
    graph: StepGraph,
    *,
    numerics: Numerics,
    shim: Shim,
    knobs: Knobs | None = None,
    held: Collection[str] = (),
) -> Schedule:
    """The schedule of `graph` on the lane that `shim` answers for, without the rules `held` names.

    The same arguments give the same schedule. A graph that no lane can lower, or an unknown name in
    `numerics` or `held`, is a `CallerError`; an op without a launch on this lane a `NoLaunchError`.
    """
    require_names(numerics, held, RULES)
    require_graph(graph)
    facts = Facts.of(graph, numerics, knobs or Knobs())
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
    body, facts = optimizer.body, optimizer.body.facts
    linked, views = link_body(body, shim)
    steps = Forms(linked, facts, shim, views).chosen()
    arena = place_buffers(steps, facts, views)
    graph = facts.graph
    return Schedule(
        model=graph.model,
        form=graph.form,
        numerics=facts.numerics,
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
