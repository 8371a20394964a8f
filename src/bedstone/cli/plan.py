"""`bedstone plan`: what a model's step becomes, before anything is compiled."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.options import ContextOption, Numerics, NumericsOption
from bedstone.errors import CallerError
from bedstone.graph.step import FormName
from bedstone.spec.dtype import FormatName

if TYPE_CHECKING:
    from bedstone.build.survey import Choices, Machine, Survey
    from bedstone.target.bandwidth import Bandwidth

MOST_SEQUENCES = 64
"""The most sequences a batch step is planned for."""


def command(
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHECKPOINT]",
            help="A Hugging Face directory, a .gguf file, or pkg:PACKAGE/FILE.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Instead, the shape of a known model such as qwen3-4b."),
    ] = None,
    format_: Annotated[
        FormatName, typer.Option("--format", help="How the matrices of a --config are held.")
    ] = "bf16",
    form: Annotated[Literal["all", FormName], typer.Option(help="Which form of the step.")] = "all",
    batch: Annotated[
        int, typer.Option(min=1, max=MOST_SEQUENCES, metavar="N", help="Sequences of a batch.")
    ] = 8,
    numerics: NumericsOption = Numerics.quantized,
    context: ContextOption = None,
    at: Annotated[
        int | None,
        typer.Option(metavar="N", help="The position to count bytes at; half the context."),
    ] = None,
    held: Annotated[
        str, typer.Option(metavar="RULE,…", help="Rules of the lane to hold back.")
    ] = "",
    unfused: Annotated[
        bool,
        typer.Option("--unfused", help="Hold every rule back, and quantize in launches apart."),
    ] = False,
    bandwidth: Annotated[
        float | None,
        typer.Option(
            metavar="GB/S", help="Memory bandwidth; measured on this machine if not given."
        ),
    ] = None,
    compute: Annotated[
        float | None,
        typer.Option(metavar="TFLOP/S", help="Arithmetic speed; times ignore it if not given."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the steps on a page.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a model's step becomes: launches, fusions and misses, bytes moved, memory."""
    from bedstone.build.request import Options
    from bedstone.build.survey import Choices, Machine
    from bedstone.cli.plan_text import survey_text
    from bedstone.lane.plan import RULES

    rules = RULES if unfused else tuple(filter(None, held.split(",")))
    forms: tuple[FormName, ...] = get_args(FormName) if form == "all" else (form,)
    options = Options(numerics.value, context, rules)
    choices = Choices(options, forms, batch, at, fuse_quant=not unfused)
    machine = Machine(_bandwidth(bandwidth), _rate("--compute", compute, 1e12))
    found = _survey(checkpoint, config, format_, choices, machine)
    if html is not None:
        _write(html, found)
    if as_json:
        print_json(found.json())
    else:
        print("\n".join(survey_text(found)))


def _survey(
    checkpoint: str | None,
    config: str | None,
    held_in: FormatName,
    choices: "Choices",
    machine: "Machine",
) -> "Survey":
    """The survey of a checkpoint, or of a known model's shape."""
    from bedstone.build.survey import survey
    from bedstone.checkpoint.reference import open_checkpoint
    from bedstone.checkpoint.shapes import shape_checkpoint

    if config is not None and checkpoint is None:
        return survey(shape_checkpoint(config, held_in), choices, machine)
    if checkpoint is None or config is not None:
        raise CallerError("a plan is of one model: expected a CHECKPOINT or a `--config`")
    with closing(open_checkpoint(checkpoint)) as opened:
        return survey(opened, choices, machine)


def _bandwidth(given: float | None) -> "Bandwidth":
    from bedstone.target.bandwidth import Bandwidth, measure_bandwidth

    rate = _rate("--bandwidth", given, 1e9)
    return measure_bandwidth() if rate is None else Bandwidth(rate, measured=False)


def _rate(option: str, given: float | None, unit: float) -> float | None:
    if given is not None and not 0 < given < float("inf"):
        raise CallerError(f"`{option}` is {given}, expected a number above 0")
    return None if given is None else given * unit


def _write(path: Path, found: "Survey") -> None:
    from bedstone.build.page.emit import emit_page

    try:
        path.write_text(emit_page(found), encoding="utf-8")
    except OSError as error:
        raise CallerError(f"`{path}` cannot be written: {error.strerror or error}") from error
