"""Options that several subcommands take."""

from enum import StrEnum
from typing import Annotated

import typer


class Numerics(StrEnum):
    """How products are computed."""

    precise = "precise"
    quantized = "quantized"


class Device(StrEnum):
    """What runs a step."""

    cpu = "cpu"
    cuda = "cuda"


DeviceOption = Annotated[
    Device | None,
    typer.Option(help="The device to run on; by default the target's."),
]
CHECKPOINT_HELP = "A Hugging Face directory, a .gguf file, or pkg:PACKAGE/FILE."
CheckpointArgument = Annotated[str, typer.Argument(metavar="CHECKPOINT", help=CHECKPOINT_HELP)]
_NAMED = "A Hugging Face directory, a .gguf file, pkg:PACKAGE/FILE, or a compiled package."

OpenedArgument = Annotated[str, typer.Argument(metavar="CHECKPOINT|PACKAGE", help=_NAMED)]
TimedArgument = Annotated[str | None, typer.Argument(metavar="[CHECKPOINT|PACKAGE]", help=_NAMED)]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--checkpoint", help="Where a package's checkpoint is now; by default where it was."
    ),
]
PackageNumericsOption = Annotated[
    Numerics | None,
    typer.Option(help="As for `bedstone compile`; by default quantized, or the package's own."),
]
NumericsOption = Annotated[
    Numerics,
    typer.Option(help="precise: float32 activations; quantized: rounded to int8 or bfloat16."),
]
SequencesOption = Annotated[
    int,
    typer.Option(metavar="N", help="Largest batch of a decode step, 1 to 64."),
]
TargetOption = Annotated[
    str,
    typer.Option(
        metavar="HARDWARE[/MODEL[/QUANTIZATION]]",
        help="What to compile for; `auto` and omitted parts are resolved.",
    ),
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Most positions of a sequence; by default the model's own, up to 32768."
    ),
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="By default one per core.")]
