"""What `prove kernel` and `prove package` share: options, and the run itself."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.cli.environment import cache_directory
from bedstone.cli.extras import extra
from bedstone.cli.options import Device
from bedstone.cli.prove.parts import parts_at

if TYPE_CHECKING:
    from bedstone.prove.kernel.prove import OpProof

PackageArgument = Annotated[
    Path,
    typer.Argument(metavar="PACKAGE", help="A package, or a manifest by its kernels."),
]
CheckpointOption = Annotated[
    str | None, typer.Option(help="Where weights come from; by default the package's own.")
]
DeviceOption = Annotated[
    Device, typer.Option(help="What runs the kernels; calls are recorded on `cpu` only.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of tokens, pages and made inputs.")]


@dataclass(frozen=True, slots=True)
class How:
    """The options."""

    checkpoint: str | None
    device: Device
    seed: int
    threads: int | None


def prove_named(package: Path, names: Sequence[str] | None, how: How) -> "list[OpProof]":
    """Judge these ops of a package, or all; progress goes to stderr."""
    parts = parts_at(package)
    with extra("define"):
        from bedstone.prove.kernel.prove import Settings, prove_ops
    parts = replace(parts, checkpoint=how.checkpoint or parts.checkpoint)
    settings = Settings(cache_directory(), how.device.value, how.seed, how.threads)
    wanted = sorted(parts.manifest.ops) if names is None else names
    return list(prove_ops(parts, wanted, settings, _progress))


def _progress(text: str) -> None:
    print(f"prove: {text}", file=sys.stderr)
