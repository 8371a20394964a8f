"""`bedstone cut`: a manifest as the stages of a pipeline."""

from pathlib import Path
from typing import Annotated

import typer

from bedstone.build.write import write_directory
from bedstone.cli.document import Document, ManifestArgument
from bedstone.cli.memory import memory_at
from bedstone.cli.table import columns, counted, size
from bedstone.spec.codec import serialize
from bedstone.spec.manifest import Manifest
from bedstone.verify.cut import cut


def command(
    manifest: ManifestArgument,
    at: Annotated[list[int], typer.Argument(metavar="AT...", help="Call indices to cut before.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder for the stages.")
    ],
) -> None:
    """Cut every driven program before the calls AT, and write a manifest for each stage."""
    stages = cut(Document.at(manifest).require_verified(), at)
    files = {_name(stage): serialize(stage).encode() for stage in stages}
    write_directory(out, files, owned=_name(stages[0]))
    print("\n".join(columns(_row(stage, out / _name(stage)) for stage in stages)))


def _name(stage: Manifest) -> str:
    return f"stage-{stage.cut.stage if stage.cut else 0}.json"


def _row(stage: Manifest, path: Path) -> tuple[str, ...]:
    """A stage's file, calls, weights and share of the states."""
    memory = memory_at(stage, {name: var.max for name, var in stage.vars.items()})
    calls = sum(len(program.calls) for program in stage.programs.values())
    weights = sum(count for kind, (_, count) in memory.buffers.items() if kind.startswith("weight"))
    states = ", ".join(
        f"{len(names)} x {size(count)} {per}" for (per, count), names in memory.states.items()
    )
    return (
        str(path),
        counted(calls, "call"),
        f"{size(weights)} weights",
        f"states {states or 'none'}",
    )
