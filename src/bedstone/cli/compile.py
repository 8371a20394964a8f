"""`bedstone compile`: a checkpoint to a package."""

from pathlib import Path
from typing import Annotated

import typer

from bedstone.cli.device import device_target
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.options import (
    CheckpointArgument,
    ContextOption,
    DeviceOption,
    Numerics,
    NumericsOption,
    SequencesOption,
    TargetOption,
)
from bedstone.cli.picks import TracesOption, read_picks
from bedstone.cli.progress import Stages
from bedstone.cli.sampling import SamplerOption
from bedstone.cli.served import read_target, tell_notes


def command(
    checkpoint: CheckpointArgument,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Where the package goes.")
    ],
    numerics: NumericsOption = Numerics.quantized,
    target: TargetOption = "auto",
    device: DeviceOption = None,
    context: ContextOption = None,
    sequences: SequencesOption = 1,
    sampler: SamplerOption = False,
    traces: TracesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a checkpoint: manifest, kernels, plan and lock in one directory."""
    from bedstone.build.compile import compile_checkpoint
    from bedstone.build.request import Options, Request
    from bedstone.checkpoint.reference import open_checkpoint

    opened = open_checkpoint(checkpoint)
    options = Options(numerics.value, context, sequences=sequences, sampler=sampler)
    wanted = device_target(target, device)
    picks = read_picks(traces, opened, wanted)
    request = Request(opened, options, cache_directory(), wanted, picks)
    with Stages() as stages:
        package = compile_checkpoint(request, out, stages.begin)
    served = read_target(package.path)
    tell_notes(opened, package)
    if as_json:
        print_json(
            {
                "package": str(package.path),
                "target": package.lock.target,
                "model": served.model,
                "borrowed": served.borrowed,
                "kernel_set": served.kernel_set,
                "numerics": package.lock.numerics,
                "context": package.lock.context,
                "sequences": package.lock.sequences,
                "sampler": package.lock.sampling is not None,
                "modules": package.lock.modules,
                "seconds": stages.seconds,
            }
        )
    else:
        print(package.path)
