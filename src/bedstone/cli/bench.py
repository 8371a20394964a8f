"""`bedstone bench`: how fast packages run, beside what the machine itself can do."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.cli.device import device_target, hardware_device
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.opened import (
    Wanted,
    compiled,
    open_package,
)
from bedstone.cli.options import (
    Device,
    DeviceOption,
    PackageNumericsOption,
    TargetOption,
    ThreadsOption,
    TimedArgument,
    WeightsOption,
)
from bedstone.cli.plan_options import HELD_IN, ConfigOption, FormatOption
from bedstone.cli.progress import Stages
from bedstone.cli.written import require_writable, write_file
from bedstone.errors import CallerError
from bedstone.spec.dtype import FormatName

if TYPE_CHECKING:
    from bedstone.bench.machine import DeviceName
    from bedstone.build.request import Package

COMMANDS = {"serve": "bedstone.cli.bench_serve"}
"""What is timed otherwise than a package by itself."""

RandomOption = Annotated[bool, typer.Option("--random", help="Use random weights for a --config.")]
AgainstOption = Annotated[
    Path | None, typer.Option(metavar="PACKAGE", help="Another package, timed alternately with it.")
]
PlotOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the roofline as SVG.")]


def command(
    checkpoint: TimedArgument = None,
    config: ConfigOption = None,
    random: RandomOption = False,
    format_: FormatOption = None,
    target: TargetOption = "auto",
    device: DeviceOption = None,
    numerics: PackageNumericsOption = None,
    batch: Annotated[str, typer.Option(metavar="N,…", help="Batch sizes.")] = "1",
    context: Annotated[
        str, typer.Option(metavar="N,…", help="Positions that a decode step attends.")
    ] = "512",
    prefill: Annotated[str, typer.Option(metavar="N,…", help="Prompt lengths.")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="Samples of each case.")] = 9,
    threads: ThreadsOption = None,
    against: AgainstOption = None,
    plot: PlotOption = None,
    weights: WeightsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time steps and prompts of a package; of a checkpoint or a config, of what it compiles to.

    `bedstone bench serve` times servers under load.
    """
    from bedstone.bench.cases import Grid, parse_sizes
    from bedstone.bench.roofline import draw_roofline
    from bedstone.bench.run import Wish, bench
    from bedstone.build.request import read_package
    from bedstone.cli.bench_text import record_lines

    if plot is not None:
        require_writable(plot)
    grid = Grid(
        parse_sizes("--batch", batch),
        parse_sizes("--context", context),
        parse_sizes("--prefill", prefill),
    )
    widest = max(grid.batches, default=1)
    pinned = device_target(target, device)
    wanted = Wanted(numerics, None, pinned, widest, weights=weights)
    _require_one_model(checkpoint, config, format_, random=random)
    with Stages() as stages:
        packages = [_package(checkpoint, config, format_ or HELD_IN, wanted, stages)]
        if against is not None:
            packages.append(read_package(against))
        runs_on = device or hardware_device(packages[0].lock.target)
        runner: DeviceName = "cuda" if runs_on is Device.cuda else "cpu"
        wish = Wish(grid, runner, repeats, cache_directory(), threads, weights)
        record = bench(packages, wish, stages.step)
    if as_json:
        print_json(record.json())
    else:
        print("\n".join(record_lines(record)))
    if plot is not None:
        write_file(plot, draw_roofline(record))


def _require_one_model(
    checkpoint: str | None, config: str | None, held_in: FormatName | None, *, random: bool
) -> None:
    """Accept a checkpoint, a package, or a config whose weights are drawn: else a `CallerError`."""
    if (checkpoint is None) == (config is None):
        raise CallerError("one model is timed: expected a CHECKPOINT, a PACKAGE or a `--config`")
    if random != (config is not None):
        raise CallerError("`--config` and `--random` go together: a config has no weights")
    if config is None and held_in is not None:
        raise CallerError("`--format` is of a `--config`: a checkpoint's matrices have their own")


def _package(
    checkpoint: str | None,
    config: str | None,
    held_in: FormatName,
    wanted: Wanted,
    stages: Stages,
) -> "Package":
    """The package of a checkpoint, or of a config with its weights drawn; or the one named."""
    from bedstone.checkpoint.drawn import drawn_checkpoint

    if config is not None:
        return compiled(drawn_checkpoint(config, held_in), wanted, stages)
    return open_package(checkpoint or "", wanted, stages)[1]
