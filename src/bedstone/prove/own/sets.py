"""Every problem of hardware sets: what their kernels are held against, at the sizes of models."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import get_args

from bedstone.build.lane import lane_of
from bedstone.checkpoint.shapes import shape_names
from bedstone.lane.schedule import Numerics
from bedstone.library.kernel import KernelSet
from bedstone.prove.own.planned import Progress, planned_in_every_way, untouched
from bedstone.prove.own.problems import OwnProblem, own_problems
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import find_set, read_sets
from bedstone.target.sources import Sources, read_sources


def sources_of(names: Sequence[str] = ()) -> list[Sources]:
    """What these hardware sets are compiled from; all that this machine's CPU runs if none."""
    sets = read_sets()
    wanted = names or runnable(sets, read_features())
    return [read_sources(find_set(name, sets)) for name in wanted]


def problems_of(
    sources: Sequence[Sources],
    models: Sequence[str] = (),
    patterns: Sequence[str] = (),
    progress: Progress = lambda _name, _done, _total: None,
) -> Iterator[tuple[OwnProblem, tuple[Sources, ...]]]:
    """The problems of sets, for all numerics, with the sets whose kernels solve each.

    Args:
        sources: The sets.
        models: Known models whose sizes are taken; all if none.
        patterns: Of the entries to keep; all if none.
        progress: Told of the plans that are made.

    Yields:
        tuple[OwnProblem, tuple[Sources, ...]]: sets that have the same kernels share a problem.
    """
    names = models or shape_names()
    planned = [
        (
            kernels,
            those,
            list(planned_in_every_way(names, kernels, progress, those[0].hardware.name)),
        )
        for kernels, those in _kernels(sources)
    ]
    for kernels, those, calls in planned:
        elsewhere = frozenset(
            call.entry
            for other, _, theirs in planned
            for call in theirs
            if call.entry not in kernels.variants
            and other.get(call.entry) == kernels.get(call.entry)
        )
        left = (call for call in untouched(calls, kernels) if call.entry not in elsewhere)
        every = [*calls, *left]
        kept = [c for c in every if any(fnmatchcase(c.entry, p) for p in patterns or ("*",))]
        for problem in own_problems(kept, kernels):
            yield problem, tuple(those)


def _kernels(sources: Sequence[Sources]) -> Iterator[tuple[KernelSet, list[Sources]]]:
    """Every set of kernels, for each numerics, with the hardware sets that have it."""
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
