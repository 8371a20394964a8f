"""From an open checkpoint to schedules and a manifest: the pure half of a compile."""

from bedstone.build.emit import Emission, Forms, Naming, emit
from bedstone.build.request import Options, served_context
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.checkpoint.names import expected_tensors
from bedstone.graph.step import FormName, StepGraph
from bedstone.lane.cpu import CpuShim
from bedstone.lane.plan import plan as lower
from bedstone.lane.schedule import MAX_CHUNK, Schedule
from bedstone.library.catalog import cpu_kernels
from bedstone.models import step_graph


def plan_form(checkpoint: Checkpoint, form: FormName, options: Options) -> Schedule:
    """The schedule of one form of the checkpoint's step."""
    graph = form_graph(checkpoint, form, served_context(checkpoint, options))
    return lower(graph, numerics=options.numerics, held=options.held, shim=CpuShim(cpu_kernels()))


def form_graph(checkpoint: Checkpoint, form: FormName, context: int) -> StepGraph:
    """The step graph of one form; a chunk takes as many rows as the param `tokens` says."""
    config = checkpoint.config
    chunk = form == "chunk"
    return step_graph(
        config,
        form,
        rows=min(MAX_CHUNK, context) if chunk else 1,
        capacity=context,
        row_param="tokens" if chunk else None,
        formats={name: checkpoint.tensor(name).format for name in expected_tensors(config)},
    )


def plan_manifest(checkpoint: Checkpoint, options: Options) -> tuple[Forms, Emission]:
    """Every form's schedule, and the manifest they become."""
    forms = Forms(
        decode=plan_form(checkpoint, "decode", options),
        chunk=plan_form(checkpoint, "chunk", options),
    )
    consts = {*forms.chunk.consts, *forms.decode.consts}
    naming = Naming(
        model=checkpoint.config.name,
        vocab=checkpoint.config.vocab,
        context=served_context(checkpoint, options),
        own={name: checkpoint.own_name(name) for name in consts},
    )
    return forms, emit(forms, naming, cpu_kernels())
