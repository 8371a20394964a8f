"""The option `--traces`: kernels picked by what was measured, and what is said of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bedstone.cli.extras import extra
from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.build.launches import Numbers
    from bedstone.build.picks import Picks, Verdict
    from bedstone.checkpoint.shapes import Shape
    from bedstone.library.kernel import Kernel

TracesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="SET",
        help="Take each kernel from the hardware set that `define bench` measured fastest.",
    ),
]


def read_picks(folder: Path | None, shape: "Shape", target: str) -> "Picks | None":
    """What the Traces of a set pick for a checkpoint's target; None without a set."""
    if folder is None:
        return None
    with extra("define"):
        from bedstone.build.route import route
        from bedstone.prove.environment import hardware_name
        from bedstone.prove.own.picks import TracePicks
        from bedstone.prove.trace_set import read_trace_set
    found = read_trace_set(folder)
    if not found.traces:
        raise CallerError(f"`{folder}` holds no Traces: `bedstone define bench` records them")
    return TracePicks(found, route(shape, target).sources, hardware_name("cpu"))


def picked_json(
    launches: "Iterable[tuple[Kernel, Numbers]]", picks: "Picks"
) -> list[dict[str, Any]]:
    """The verdict on each different launch."""
    return [
        {"entry": entry, "sizes": dict(sizes), "from": verdict.hardware, "why": verdict.reason}
        for (entry, sizes), verdict in _verdicts(launches, picks)
    ]


def picked_lines(launches: "Iterable[tuple[Kernel, Numbers]]", picks: "Picks") -> Iterator[str]:
    """Each launch whose kernel comes from another set, and why; and how many stay."""
    stay = 0
    for (entry, sizes), verdict in _verdicts(launches, picks):
        if verdict.hardware is None:
            stay += 1
        else:
            numbers = " ".join(f"{name}={value}" for name, value in sizes)
            yield f"  {entry} {numbers}: from `{verdict.hardware}`, {verdict.reason}"
    yield f"  {stay} kept"


def _verdicts(
    launches: "Iterable[tuple[Kernel, Numbers]]", picks: "Picks"
) -> "Iterator[tuple[tuple[str, tuple[tuple[str, int | float], ...]], Verdict]]":
    seen = set()
    for kernel, numbers in launches:
        key = (kernel.entry, tuple(numbers.items()))
        if key not in seen:
            seen.add(key)
            yield key, picks.pick(kernel, numbers)
