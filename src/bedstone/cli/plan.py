"""`bedstone plan`: what a model's step becomes, before anything is compiled."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.options import (
    ContextOption,
    Numerics,
    NumericsOption,
    SequencesOption,
    TargetOption,
)
from bedstone.cli.picks import TracesOption, picked_json, picked_lines, read_picks
from bedstone.cli.plan_options import (
    HELD_IN,
    AtOption,
    BandwidthOption,
    ComputeOption,
    ConfigOption,
    FormatOption,
    FormOption,
    HeldOption,
    HtmlOption,
    PlannedArgument,
    UnfusedOption,
)
from bedstone.cli.sampling import SamplerOption
from bedstone.cli.written import require_writable, write_file
from bedstone.errors import CallerError
from bedstone.spec.dtype import FormatName

if TYPE_CHECKING:
    from bedstone.build.launches import Numbers
    from bedstone.build.survey import Survey
    from bedstone.checkpoint.shapes import Shape
    from bedstone.library.kernel import Kernel
    from bedstone.target.bandwidth import Bandwidth


def command(
    checkpoint: PlannedArgument = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    form: FormOption = "all",
    sequences: SequencesOption = 8,
    sampler: SamplerOption = False,
    target: TargetOption = "auto",
    numerics: NumericsOption = Numerics.quantized,
    context: ContextOption = None,
    at: AtOption = None,
    held: HeldOption = "",
    unfused: UnfusedOption = False,
    bandwidth: BandwidthOption = None,
    compute: ComputeOption = None,
    traces: TracesOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a model's step becomes: launches, fusions and misses, bytes moved, memory."""
    from bedstone.build.lane import target_lane
    from bedstone.build.request import Options, served_forms
    from bedstone.build.survey import Choices, Machine, survey
    from bedstone.cli.plan_text import survey_text
    from bedstone.lane.plan import RULES

    if html is not None:
        require_writable(html)
    rules = RULES if unfused else tuple(filter(None, held.split(",")))
    options = Options(numerics.value, context, rules, sequences, sampler)
    forms = served_forms(options) if form == "all" else (form,)
    lane = target_lane(target, numerics.value)
    choices = Choices(options, forms, lane.unfused if unfused else lane, at)
    machine = Machine(_bandwidth(bandwidth), _rate("--compute", compute, 1e12))
    with _shape(checkpoint, config, format_) as shape:
        picks = read_picks(traces, shape, target)
        found = survey(shape, choices, machine)
    if as_json:
        picked = {} if picks is None else {"picked": picked_json(_launches(found), picks)}
        print_json({**found.json(), **picked})
    else:
        lines = survey_text(found)
        if picks is not None:
            lines += ["", "picked by traces", *picked_lines(_launches(found), picks)]
        print("\n".join(lines))
    if html is not None:
        from bedstone.build.page.emit import emit_page

        write_file(html, emit_page(found))


@contextmanager
def _shape(
    checkpoint: str | None, config: str | None, held_in: FormatName | None
) -> "Iterator[Shape]":
    """A checkpoint while it is open, or a known model's shape."""
    from bedstone.checkpoint.reference import open_checkpoint
    from bedstone.checkpoint.shapes import shape_checkpoint

    if config is not None and checkpoint is None:
        yield shape_checkpoint(config, held_in or HELD_IN)
        return
    if checkpoint is None or config is not None:
        raise CallerError("a plan is of one model: expected a CHECKPOINT or a `--config`")
    if held_in is not None:
        raise CallerError("`--format` is of a `--config`: a checkpoint's matrices have their own")
    with closing(open_checkpoint(checkpoint)) as opened:
        yield opened


def _launches(found: "Survey") -> "Iterator[tuple[Kernel, Numbers]]":
    from bedstone.build.launches import launches

    for step in found.steps.values():
        yield from launches(step.schedule, step.lane.kernels, found.context)


def _bandwidth(given: float | None) -> "Bandwidth":
    from bedstone.target.bandwidth import Bandwidth, measure_bandwidth

    rate = _rate("--bandwidth", given, 1e9)
    return measure_bandwidth() if rate is None else Bandwidth(rate, measured=False)


def _rate(option: str, given: float | None, unit: float) -> float | None:
    if given is not None and not 0 < given < float("inf"):
        raise CallerError(f"`{option}` is {given}, expected a number above 0")
    return None if given is None else given * unit
