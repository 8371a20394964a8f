"""`bedstone target explain`: which target serves a checkpoint, and why no other does."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.options import TargetOption
from bedstone.cli.table import columns
from bedstone.errors import CallerError
from bedstone.spec.dtype import FormatName

if TYPE_CHECKING:
    from bedstone.build.route import Explanation

NEGATIVE = 1
"""The exit code where nothing serves the checkpoint."""


def command(
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHECKPOINT]",
            help="A Hugging Face directory or its config.json, a .gguf file, or pkg:PACKAGE/FILE.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Instead, the shape of a known model such as qwen3-4b."),
    ] = None,
    format_: Annotated[
        FormatName,
        typer.Option("--format", help="Weight format, where only a config is given."),
    ] = "bf16",
    target: TargetOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Show every candidate target of a checkpoint, and why it was kept or dropped."""
    found = _explanation(checkpoint, config, format_, target)
    if as_json:
        print_json(_json(found))
    else:
        print("\n".join(_lines(found)))
    if found.resolution.chosen is None:
        raise typer.Exit(NEGATIVE)


def _explanation(
    checkpoint: str | None, config: str | None, held_in: FormatName, target: str
) -> "Explanation":
    from bedstone.build.route import explain
    from bedstone.checkpoint.reference import open_checkpoint
    from bedstone.checkpoint.shapes import shape_checkpoint

    if (checkpoint is None) == (config is None):
        raise CallerError("a target is of one model: expected a CHECKPOINT or a `--config`")
    if checkpoint is None:
        return explain(shape_checkpoint(config or "", held_in), target)
    if checkpoint.endswith(".json"):
        return explain(_config_shape(Path(checkpoint), held_in), target)
    with closing(open_checkpoint(checkpoint)) as opened:
        return explain(opened, target)


def _config_shape(path: Path, held_in: FormatName) -> Any:  # noqa: ANN401 - imported below
    from bedstone.checkpoint.hf_config import parse_hf_config
    from bedstone.checkpoint.json_text import read_object
    from bedstone.checkpoint.shapes import ShapeCheckpoint

    name = path.resolve().parent.name
    return ShapeCheckpoint(name, parse_hf_config(read_object(path), str(path), name), held_in)


def _lines(found: "Explanation") -> list[str]:
    subject, hardware = found.subject, found.hardware
    facts = " · ".join(f"{name} {value}" for name, value in subject.facts.items())
    judged = [
        (
            f"{hardware.name}/{j.candidate}",
            j.candidate.tier,
            "chosen" if j.candidate is found.resolution.chosen else f"dropped: {j.dropped}",
        )
        for j in found.resolution.judged
    ]
    others = [(f"{name}/…", "", f"dropped: {why}") for name, why in found.others.items()]
    lines = [
        f"checkpoint  {' · '.join(subject.names)}",
        f"model_type  {subject.model_type} · quantization {subject.quantization} · {facts}",
        "",
        *columns([("target", "tier", "verdict"), *judged, *others]),
        "",
    ]
    return [*lines, *_verdict(found)]


def _verdict(found: "Explanation") -> list[str]:
    resolution = found.resolution
    if resolution.chosen is None:
        return [f"none: {resolution.problem}"]
    chosen = f"{found.hardware.name}/{resolution.chosen}"
    if not resolution.borrowed:
        return [f"served by {chosen}"]
    return [
        f"served by {chosen}, borrowed: none of its match names "
        f"({', '.join(resolution.chosen.match_names)}) is in the checkpoint's name, so it runs "
        f"with the policy of another model"
    ]


def _json(found: "Explanation") -> dict[str, Any]:
    resolution = found.resolution
    return {
        "subject": {
            "names": list(found.subject.names),
            "model_type": found.subject.model_type,
            "quantization": found.subject.quantization,
            **found.subject.facts,
        },
        "hardware": found.hardware.name,
        "chosen": None if resolution.chosen is None else str(resolution.chosen),
        "borrowed": resolution.borrowed,
        "problem": resolution.problem,
        "candidates": [
            {"target": str(j.candidate), "tier": j.candidate.tier, "dropped": j.dropped}
            for j in resolution.judged
        ],
        "other_hardware": dict(found.others),
    }
