"""The options of `bedstone plan`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from bedstone.cli.options import CHECKPOINT_HELP
from bedstone.graph.step import FormName
from bedstone.spec.dtype import FormatName

PlannedArgument = Annotated[
    str | None, typer.Argument(metavar="[CHECKPOINT]", help=CHECKPOINT_HELP)
]
ConfigOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Instead, the shape of a known model such as qwen3-4b."),
]
FormatOption = Annotated[
    FormatName | None,
    typer.Option("--format", help="Weight format of a --config; by default bf16."),
]
HELD_IN: FormatName = "bf16"
"""How the matrices of a config are held where nothing says so."""
FormOption = Annotated[Literal["all", FormName], typer.Option(help="Which form of the step.")]
AtOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Position at which bytes are counted; by default half the context."
    ),
]
HeldOption = Annotated[str, typer.Option(metavar="RULE,…", help="Rules of the lane to hold back.")]
UnfusedOption = Annotated[
    bool, typer.Option("--unfused", help="Hold every rule back, and quantize in separate launches.")
]
BandwidthOption = Annotated[
    float | None,
    typer.Option(metavar="GB/S", help="Memory bandwidth; measured on this machine if not given."),
]
ComputeOption = Annotated[
    float | None,
    typer.Option(metavar="TFLOP/S", help="Arithmetic rate; ignored if not given."),
]
HtmlOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also draw the steps on a page.")
]
