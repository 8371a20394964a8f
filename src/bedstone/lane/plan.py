"""`plan`: a step graph in, a schedule out.

The passes, each a function of its inputs: check, optimize (the shared table under the shim), order,
views, link, forms, buffers, verify.
"""

from collections.abc import Collection, Iterator, Mapping

from bedstone.graph.step import Row, StepGraph
from bedstone.lane.arena import place_buffers
from bedstone.lane.body import Body
from bedstone.lane.check import require_graph, require_lowerable, require_names
from bedstone.lane.errors import NoLaunchError, ScheduleError
from bedstone.lane.facts import Facts, Knobs
from bedstone.lane.forms import Forms
from bedstone.lane.link import link
from bedstone.lane.optimize import Optimizer
from bedstone.lane.schedule import Numerics, Schedule, Step
from bedstone.lane.shim import Shim
from bedstone.lane.table import TABLE
from bedstone.lane.verify import verify
from bedstone.lane.views import View, find_views

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
    views = find_views(body)
    linked = tuple(_linked(body, shim, views))
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


def _linked(body: Body, shim: Shim, views: Mapping[str, View]) -> Iterator[Step]:
    """The launches of every node, in order; a row that is a view takes none."""
    for key in body.order():
        node = body.nodes[key]
        if isinstance(node.op, Row) and node.op.out in views:
            continue
        for launch in link(node.op, body.facts):
            why = shim.lacks(launch)
            if why is not None:
                raise NoLaunchError(key, body.facts.graph.ops[key].out, why)
            yield Step(launch, node.sources)
