"""`bedstone define export`: our kernels as a set, Workloads at the sizes of known models."""

from pathlib import Path
from typing import Annotated

import typer

from bedstone.cli.define.options import ReplaceOption
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.progress import Stages
from bedstone.cli.table import counted
from bedstone.errors import CallerError


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="SET", help="A folder that is made, or an earlier export.")
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
    replace: ReplaceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write Definitions, Solutions and Workloads of our kernels, for `define bench`.

    An earlier export is replaced, but for its Traces.
    """
    from bedstone.prove.own.problems import Written
    from bedstone.prove.own.sets import problems_of, sources_of
    from bedstone.prove.place import require_replaceable, written_beside

    require_replaceable(folder, replace=replace)
    written = Written()
    with Stages() as stages, written_beside(folder) as beside:
        every = list(problems_of(sources_of(target or ()), config or (), kernel or (), stages.step))
        if not every:
            raise CallerError(f"`--kernel {' '.join(kernel or ())}`: no entry is called so")
        for at, (problem, sources) in enumerate(every):
            stages.step(problem.definition.name, at + 1, len(every))
            written.add(beside, problem, sources)
    counts = written.counts()
    if as_json:
        print_json({"set": str(folder), **counts})
    else:
        print(", ".join(counted(count, name[:-1]) for name, count in counts.items()))
