"""From an open checkpoint to schedules and a manifest: the pure half of a compile."""

import math

from bedstone.build.emit import Emission, Forms, Naming, emit
from bedstone.build.request import Options, served_context
from bedstone.build.step import plan_step
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.checkpoint.constants import Window
from bedstone.graph.step import FormName
from bedstone.lane.schedule import Schedule
from bedstone.library.catalog import cpu_kernels
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import Segment


def plan_form(checkpoint: Checkpoint, form: FormName, options: Options) -> Schedule:
    """The schedule of one form of the checkpoint's step."""
    return plan_step(checkpoint, form, options).schedule


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
        binds={name: _segments(checkpoint, name) for name in sorted(consts)},
    )
    return forms, emit(forms, naming, cpu_kernels())


def _segments(checkpoint: Checkpoint, constant: str) -> tuple[Segment, ...]:
    """The rows of the checkpoint's tensors that a constant is made of."""
    return tuple(_segment(checkpoint, window) for window in checkpoint.constants[constant].windows)


def _segment(checkpoint: Checkpoint, window: Window) -> Segment:
    """Rows of a tensor that a manifest sees as its first axis by the product of the others."""
    info = checkpoint.tensor(window.tensor)
    each = math.prod(info.shape[1:-1])
    if window.rows == math.prod(info.shape[:-1]):
        return Segment(info.name)
    first, start = divmod(window.start, each)
    if start == 0 and window.rows % each == 0:
        return Segment(info.name, rows=(first, first + window.rows // each))
    form = FORMATS[info.format]
    wide = form.row_bytes(info.shape[-1]) if form.quantized else info.shape[-1]
    columns = (start * wide, (start + window.rows) * wide)
    return Segment(info.name, rows=(first, first + 1), cols=columns)
