"""`bedstone cut`: a manifest as the stages of a pipeline."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bedstone.cli.document import Document, ManifestArgument
from bedstone.cli.memory import memory_at
from bedstone.cli.table import columns, size
from bedstone.errors import CallerError
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
    write_stages(stages, out)
    print("\n".join(columns(_row(stage, out / _name(stage)) for stage in stages)))


def write_stages(stages: Sequence[Manifest], out: Path) -> None:
    """Write all the stages or nothing: beside `out`, then renamed.

    Raises:
        CallerError: `out` has something in it, or the folder it belongs in cannot be written.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise CallerError(f"`{out}` exists; give a new folder for the stages")
    beside: str | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent)
        for stage in stages:
            (Path(beside) / _name(stage)).write_text(serialize(stage) + "\n", encoding="utf-8")
        Path(beside).chmod(0o755)
        Path(beside).replace(out)
    except OSError as error:
        raise CallerError(f"`{out}` cannot be written: {error.strerror or error}") from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


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
    return str(path), f"{calls} calls", f"{size(weights)} weights", f"states {states or 'none'}"
