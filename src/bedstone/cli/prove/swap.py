"""`bedstone prove swap`: whether package B may take the place of package A.

One fact a line, the verdict last. Exit 0 is PASS, 1 FAIL, 2 INCONCLUSIVE or bad input.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bedstone.cli.device import hardware_device
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.options import Device, DeviceOption, ThreadsOption
from bedstone.cli.prove.parts import parts_at
from bedstone.cli.written import require_writable, write_file
from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.prove.swap.swap import Proof, Settings
    from bedstone.prove.swap.verdict import Verdict
    from bedstone.runtime.load import Parts

_SIDE = "a package, or a manifest by its kernels."


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help=f"What runs now: {_SIDE}")],
    b: Annotated[Path, typer.Argument(metavar="B", help=f"What is to take its place: {_SIDE}")],
    checkpoint: Annotated[
        str | None, typer.Option(help="Where weights come from; by default A's own checkpoint.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of tokens and of the order of pages.")] = 1,
    logit_kl: Annotated[
        float, typer.Option(min=0.0, help="Most KL divergence of a row of logits, in nats.")
    ] = 0.01,
    drift: Annotated[
        float, typer.Option(min=0.0, help="Most relative error of what a span writes.")
    ] = 5e-3,
    timed: Annotated[
        bool, typer.Option("--perf/--no-perf", help="Time both too, where B does not crash.")
    ] = True,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the proof for `bedstone prove show`.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the proof on a page.")
    ] = None,
    find: Annotated[
        bool, typer.Option("--bisect", help="Where it is a FAIL, find the changes that cause it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Judge whether B may take A's place: run both, compare, and say PASS or not."""
    from bedstone.prove.swap.report import document
    from bedstone.prove.swap.swap import Settings, prove_swap
    from bedstone.prove.swap.verdict import EXIT, Bounds

    for file in (out, html):
        if file is not None:
            require_writable(file)
    mine, theirs = _pair(a, b, checkpoint)
    settings = Settings(
        Bounds(logit_kl, drift=drift),
        cache_directory(),
        seed,
        threads,
        timed=timed,
        **_placed(a, device),
    )
    proof = prove_swap(mine, theirs, settings, _stage)
    kept = document(proof, {"a": str(a), "b": str(b)})
    if find:
        _add_bisection(kept, (a, mine), (b, theirs), proof, settings)
    if as_json:
        print_json(kept)
    else:
        print("\n".join(kept["lines"]), flush=True)
    # told first: a full disk takes nothing of it
    if out is not None:
        write_file(out, json.dumps(kept, indent=1) + "\n")
    if html is not None:
        write_file(html, _page(proof, settings, kept))
    raise typer.Exit(EXIT[proof.verdict.word])


def _page(proof: "Proof", settings: "Settings", kept: dict[str, Any]) -> str:
    from bedstone.prove.swap.page import emit_page

    return emit_page(proof, settings.bounds, kept["lines"], (kept["a"], kept["b"])) + "\n"


def _placed(a: Path, device: Device | None) -> dict[str, Any]:
    """A's package, the device, its own unless one is named, and what kernels keep in paged states.

    A manifest is of the package that it lies in.
    """
    from bedstone.build.lane import target_lane
    from bedstone.build.request import is_package, read_package

    package = a if a.is_dir() else a.parent
    if not is_package(package):
        return {"device": (device or Device.cpu).value}
    lock = read_package(package).lock
    chosen = device or hardware_device(lock.target)
    lane = target_lane(lock.target, "quantized" if lock.numerics == "quantized" else "precise")
    return {"package": package, "device": chosen.value, "cached": lane.kernels.cache}


def _pair(a: Path, b: Path, checkpoint: str | None) -> "tuple[Parts, Parts]":
    """Both sides with one checkpoint.

    Raises `CallerError`: they were compiled from different ones.
    """
    mine, theirs = parts_at(a), parts_at(b)
    if None not in {mine.identity, theirs.identity} and mine.identity != theirs.identity:
        raise CallerError(
            f"`{a}` and `{b}` were compiled from different checkpoints: `{mine.checkpoint}` and "
            f"`{theirs.checkpoint}`"
        )
    weights = checkpoint or mine.checkpoint or theirs.checkpoint
    return replace(mine, checkpoint=weights), replace(theirs, checkpoint=weights)


def _add_bisection(
    kept: dict[str, Any],
    a: "tuple[Path, Parts]",
    b: "tuple[Path, Parts]",
    proof: "Proof",
    settings: "Settings",
) -> None:
    """Find the changes that fail and put them before the verdict."""
    from bedstone.prove.bisect.find import bisect, hybrids, lines
    from bedstone.prove.swap.swap import prove_swap

    if proof.verdict.word != "FAIL":
        kept["lines"][-1:-1] = ["bisect: nothing fails"]
        return

    def judge(hybrid: "Parts") -> "Verdict":
        untimed = replace(settings, timed=False)
        return prove_swap(a[1], hybrid, untimed, lambda _: None).verdict

    with hybrids(a, b, proof, settings.cache) as (held, fixed):
        found = bisect(held, fixed, proof, judge, _stage)
    kept["bisect"] = asdict(found)
    kept["lines"][-1:-1] = lines(found)


def _stage(name: str) -> None:
    print(f"prove: {name}", file=sys.stderr)
