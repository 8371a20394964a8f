"""`bedstone define export`: our kernels as a set, Workloads at the sizes of known models."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.progress import Stages
from bedstone.cli.table import counted
from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.library.kernel import KernelSet
    from bedstone.target.sources import Sources


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
    """Write Definitions, Solutions and Workloads of our kernels; `define bench` runs a CPU's."""
    from bedstone.prove.own.planned import planned_in_every_way, untouched
    from bedstone.prove.own.problems import Written, own_problems

    if folder.exists() and any(folder.iterdir()):
        raise CallerError(f"`{folder}` holds something: expected an empty folder, or none")
    patterns = kernel or ("*",)
    names, written = _names(config), Written()
    with Stages() as stages:
        for kernels, sources in _kernels(_sources(target or ())):
            of = sources[0].hardware.name
            calls = list(planned_in_every_way(names, kernels, stages.step, of))
            every = [*calls, *untouched(calls, kernels)]
            kept = [c for c in every if any(fnmatchcase(c.entry, p) for p in patterns)]
            problems = list(own_problems(kept, kernels))
            for at, problem in enumerate(problems):
                stages.step(problem.definition.name, at + 1, len(problems))
                written.add(folder, problem, sources)
    counts = written.counts()
    if as_json:
        print_json({"set": str(folder), **counts})
    else:
        print(", ".join(counted(count, name[:-1]) for name, count in counts.items()))


def _kernels(sources: "list[Sources]") -> "Iterator[tuple[KernelSet, list[Sources]]]":
    """Every set of kernels, for each numerics, with the hardware sets that have it."""
    from bedstone.build.lane import lane_of
    from bedstone.lane.schedule import Numerics

    found: list[tuple[KernelSet, list[Sources]]] = []
    for each in sources:
        kinds = [lane_of(each.hardware, numerics).kernels for numerics in get_args(Numerics)]
        for kernels in {id(kind): kind for kind in kinds}.values():
            held = next((those for known, those in found if known is kernels), None)
            if held is None:
                found.append((kernels, [each]))
            else:
                held.append(each)
    yield from found


def _names(given: list[str] | None) -> tuple[str, ...]:
    from bedstone.checkpoint.shapes import shape_names

    return tuple(given) if given else shape_names()


def _sources(names: Sequence[str]) -> "list[Sources]":
    from bedstone.target.cpu import runnable
    from bedstone.target.features import read_features
    from bedstone.target.hardware import find_set, read_sets
    from bedstone.target.sources import read_sources

    sets = read_sets()
    wanted = names or runnable(sets, read_features())
    return [read_sources(find_set(name, sets)) for name in wanted]
