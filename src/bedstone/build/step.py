"""One form of a model's step, planned: its graph and the schedule that the graph becomes."""

from dataclasses import dataclass

from bedstone.build.request import Options, served_context, served_forms
from bedstone.checkpoint.shapes import Shape
from bedstone.errors import CallerError
from bedstone.graph.step import FormName, StepGraph
from bedstone.lane.cpu import CpuShim
from bedstone.lane.facts import Knobs
from bedstone.lane.plan import plan as lower
from bedstone.lane.schedule import MAX_CHUNK, Schedule
from bedstone.library.catalog import cpu_kernels
from bedstone.models import step_graph


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step graph and its schedule; the schedule's launches name the graph's ops by number."""

    graph: StepGraph
    schedule: Schedule


def plan_step(
    shape: Shape, form: FormName, options: Options, *, fuse_quant: bool = True
) -> PlannedStep:
    """Plan one form; one that such a step does not have is a `CallerError`.

    Without `fuse_quant` no launch writes the quantized form of its result: quantizes stand apart.
    """
    if form not in served_forms(options):
        raise CallerError(f"a batch is of several sequences, not of {options.sequences}")
    graph = form_graph(shape, form, served_context(shape, options), options.sequences)
    schedule = lower(
        graph,
        numerics=options.numerics,
        held=options.held,
        shim=CpuShim(cpu_kernels()),
        knobs=Knobs(fuse_quant=fuse_quant),
    )
    return PlannedStep(graph, schedule)


def form_graph(shape: Shape, form: FormName, context: int, sequences: int = 1) -> StepGraph:
    """The step graph of one form; a chunk takes as many rows as the param `tokens` says."""
    rows = {"decode": 1, "chunk": min(MAX_CHUNK, context), "batch": sequences}
    return step_graph(
        shape.config,
        form,
        rows=rows[form],
        capacity=context,
        row_param="tokens" if form == "chunk" else None,
        formats={name: shape.format(name) for name in shape.constants},
    )
