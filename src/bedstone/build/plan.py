"""From an open checkpoint to schedules and a manifest: the pure half of a compile."""

from bedstone.build.emit import Emission, Forms, Naming, emit
from bedstone.build.lane import Lane
from bedstone.build.picks import Picks
from bedstone.build.request import Options, served_context, served_forms
from bedstone.build.segments import segments
from bedstone.build.step import plan_step
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.graph.step import FormName
from bedstone.lane.schedule import Schedule
from bedstone.spec.manifest import Segment


def plan_form(checkpoint: Checkpoint, form: FormName, options: Options, lane: Lane) -> Schedule:
    """The schedule of one form of the checkpoint's step."""
    return plan_step(checkpoint, form, options, lane).schedule


def plan_manifest(
    checkpoint: Checkpoint, options: Options, lane: Lane, picks: Picks | None = None
) -> tuple[Forms, Emission]:
    """Every form's schedule, and the manifest they become of the kernels that `picks` says."""
    planned = {form: plan_form(checkpoint, form, options, lane) for form in served_forms(options)}
    forms = Forms(**planned)
    consts = {*forms.chunk.consts, *forms.decode.consts}
    naming = Naming(
        model=checkpoint.config.name,
        vocab=checkpoint.config.vocab,
        context=served_context(checkpoint, options),
        binds={name: _binds(checkpoint, name) for name in sorted(consts)},
    )
    return forms, emit(forms, naming, lane.kernels, picks)


def _binds(checkpoint: Checkpoint, constant: str) -> tuple[Segment, ...]:
    """The rows of the checkpoint's tensors that a constant is made of."""
    found = checkpoint.constants[constant]
    tensors = {window.tensor: checkpoint.tensor(window.tensor) for window in found.windows}
    return segments(found, tensors)
