"""`bedstone bench`: how fast packages run, beside what the machine itself can do."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.cli.device import device_target, hardware_device
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.options import Device, DeviceOption, Numerics, TargetOption
from bedstone.cli.plan_options import HELD_IN, ConfigOption, FormatOption
from bedstone.cli.progress import Stages
from bedstone.cli.run import RunNumericsOption, Wanted
from bedstone.cli.written import require_writable, write_file
from bedstone.errors import CallerError
from bedstone.spec.dtype import FormatName

if TYPE_CHECKING:
    from bedstone.bench.machine import DeviceName
    from bedstone.build.request import Package
    from bedstone.checkpoint.checkpoint import Checkpoint

COMMANDS = {"serve": "bedstone.cli.bench_serve"}
"""What is timed otherwise than a package by itself."""

TimedArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[CHECKPOINT|PACKAGE]",
        help="A Hugging Face directory, a .gguf file, pkg:PACKAGE/FILE, or a compiled package.",
    ),
]


def command(
    checkpoint: TimedArgument = None,
    config: ConfigOption = None,
    random: Annotated[
        bool, typer.Option("--random", help="Draw the weights of a --config, in memory.")
    ] = False,
    format_: FormatOption = None,
    target: TargetOption = "auto",
    device: DeviceOption = None,
    numerics: RunNumericsOption = None,
    batch: Annotated[str, typer.Option(metavar="N,…", help="Sequences of a step.")] = "1",
    context: Annotated[
        str, typer.Option(metavar="N,…", help="Positions that a step attends.")
    ] = "512",
    prefill: Annotated[str, typer.Option(metavar="N,…", help="Tokens of prompts.")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="Samples of each case.")] = 9,
    threads: Annotated[int | None, typer.Option(min=1, help="One a core by default.")] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="PACKAGE", help="Another, timed in turns with it.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the roofline, SVG.")
    ] = None,
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
    wanted = Wanted(numerics, None, device_target(target, device), widest)
    reference = _reference(checkpoint, config, format_, random=random)
    with Stages() as stages:
        packages = [_package(reference, wanted, stages)]
        if against is not None:
            packages.append(read_package(against))
        runs_on = device or hardware_device(packages[0].lock.target)
        runner: DeviceName = "cuda" if runs_on is Device.cuda else "cpu"
        wish = Wish(grid, runner, repeats, cache_directory(), threads)
        record = bench(packages, wish, stages.step)
    if as_json:
        print_json(record.json())
    else:
        print("\n".join(record_lines(record)))
    if plot is not None:
        write_file(plot, draw_roofline(record))


def _reference(
    checkpoint: str | None, config: str | None, held_in: FormatName | None, *, random: bool
) -> str:
    """The checkpoint, the package, or the config whose weights are drawn."""
    from bedstone.checkpoint.drawn import drawn_reference

    if (checkpoint is None) == (config is None):
        raise CallerError("one model is timed: expected a CHECKPOINT, a PACKAGE or a `--config`")
    if random != (config is not None):
        raise CallerError("`--config` and `--random` go together: a config has no weights")
    if config is None and held_in is not None:
        raise CallerError("`--format` is of a `--config`: a checkpoint's matrices have their own")
    return checkpoint or drawn_reference(config or "", held_in or HELD_IN)


def _package(reference: str, wanted: Wanted, stages: Stages) -> "Package":
    """The package named, or the one in the cache that the checkpoint compiles to."""
    from bedstone.build.compiler import compiler_identity
    from bedstone.build.request import Options, Request, is_package, read_package
    from bedstone.target.cache import require_cache

    if is_package(Path(reference)):
        package = read_package(Path(reference))
        replace(wanted, sequences=1).require_so(package)  # a grid refuses what it is too narrow for
        return package
    numerics = wanted.numerics or Numerics.quantized
    options = Options(numerics.value, sequences=wanted.sequences)
    request = Request(_opened(reference), options, cache_directory(), wanted.target)
    cached = request.cached(compiler_identity(request.hardware.vendor))
    if is_package(cached):
        return read_package(cached)
    require_cache(cached.parent)
    from bedstone.build.compile import compile_checkpoint

    return compile_checkpoint(request, cached, stages.begin)


def _opened(reference: str) -> "Checkpoint":
    from bedstone.checkpoint.drawn import PREFIX, open_drawn
    from bedstone.checkpoint.reference import open_checkpoint

    return open_drawn(reference) if reference.startswith(PREFIX) else open_checkpoint(reference)
