"""`bedstone define rank`: which Solution is best on each device."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.cli.define.options import SetArgument, require_known
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.table import columns
from bedstone.cli.written import write_file

if TYPE_CHECKING:
    from bedstone.prove.rank import Standing


def command(
    folder: SetArgument,
    definition: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these; may be repeated.")
    ] = None,
    hardware: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this device, as Traces name it.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the Traces on a page.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Rank Solutions by Workloads solved and speed, apart for each Definition and device."""
    from bedstone.prove.rank import rank
    from bedstone.prove.trace_set import read_trace_set

    held = read_trace_set(folder)
    require_known("--definition", definition or (), {*held.definitions, *held.traces})
    devices = {t.evaluation.environment.hardware for t in held.every_trace() if t.evaluation}
    require_known("--hardware", () if hardware is None else (hardware,), devices)
    traces = [
        trace
        for trace in held.every_trace()
        if trace.evaluation is not None
        and (not definition or trace.definition in definition)
        and hardware in (None, trace.evaluation.environment.hardware)
    ]
    standings = rank(traces)
    if as_json:
        print_json({"standings": [asdict(standing) for standing in standings]})
    else:
        print("\n".join(columns([_HEADER, *map(_row, standings)])))
    if html is not None:
        from bedstone.prove.page import emit_page

        write_file(html, emit_page(traces))


_HEADER = ("definition", "device", "solution", "solved", "speed-up", "against", "fastest", "")


def _row(standing: "Standing") -> tuple[str, ...]:
    remarks = [*standing.failures]
    if standing.impossible:
        remarks.append(f"{standing.impossible} without a time")
    return (
        standing.definition,
        standing.hardware,
        standing.solution,
        f"{standing.solved}/{standing.workloads}",
        "" if standing.speedup is None else f"{standing.speedup:.3g}x",
        standing.baseline,
        str(standing.wins),
        ", ".join(remarks),
    )
