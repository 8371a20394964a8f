"""One form of a model's step, planned: its graph and the schedule that the graph becomes."""

from dataclasses import dataclass

from bedstone.build.joined import Together
from bedstone.build.lane import Lane
from bedstone.build.launches import calls
from bedstone.build.request import Options, served_context, served_forms
from bedstone.checkpoint.shapes import Shape
from bedstone.errors import CallerError
from bedstone.graph.step import FormName, StepGraph
from bedstone.lane.schedule import Schedule
from bedstone.models import step_graph


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step graph and its schedule, of so many positions.

    The schedule's launches name the graph's ops by number.
    """

    graph: StepGraph
    schedule: Schedule
    lane: Lane
    context: int

    @property
    def calls(self) -> tuple[Together, ...]:
        """The schedule's launches as the lane's kernels do them."""
        return calls(self.schedule, self.lane.kernels, self.context)


def plan_step(shape: Shape, form: FormName, options: Options, lane: Lane) -> PlannedStep:
    """Plan one form for a lane; one that such a step does not have is a `CallerError`."""
    if form not in served_forms(options):
        raise CallerError(f"a batch is of several sequences, not of {options.sequences}")
    context = served_context(shape, options)
    rows = {"decode": 1, "chunk": lane.knobs.max_chunk, "batch": options.sequences}
    graph = form_graph(shape, form, context, rows[form], sampled=options.sampler)
    return PlannedStep(graph, lane.lower(graph, options.held), lane, context)


def form_graph(
    shape: Shape, form: FormName, context: int, rows: int, *, sampled: bool = False
) -> StepGraph:
    """The step graph of one form; a chunk takes as many rows as the param `tokens` says."""
    return step_graph(
        shape.config,
        form,
        rows=min(rows, context) if form == "chunk" else rows,
        capacity=context,
        row_param="tokens" if form == "chunk" else None,
        sampled=sampled,
        formats={name: shape.format(name) for name in shape.constants},
    )
