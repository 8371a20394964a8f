"""`bedstone define export`: our kernels as a set, Workloads at the sizes of known models."""

from pathlib import Path
from typing import Annotated

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.progress import Stages
from bedstone.cli.table import counted
from bedstone.errors import CallerError


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="SET", help="A folder that is made, or is empty.")
    ],
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Sizes of these known models; all if not given."),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only entries like this, such as `linear_q_*`."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="SET", help="Hardware sets; all this machine runs if not given."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write Definitions, Solutions and Workloads of our kernels, for `define bench`."""
    from bedstone.prove.own.problems import Written
    from bedstone.prove.own.sets import problems_of, sources_of

    if folder.exists() and any(folder.iterdir()):
        raise CallerError(f"`{folder}` holds something: expected an empty folder, or none")
    written = Written()
    with Stages() as stages:
        every = list(problems_of(sources_of(target or ()), config or (), kernel or (), stages.step))
        for at, (problem, sources) in enumerate(every):
            stages.step(problem.definition.name, at + 1, len(every))
            written.add(folder, problem, sources)
    counts = written.counts()
    if as_json:
        print_json({"set": str(folder), **counts})
    else:
        print(", ".join(counted(count, name[:-1]) for name, count in counts.items()))
