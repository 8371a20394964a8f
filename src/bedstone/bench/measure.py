"""Packages timed case by case, in turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bedstone.bench.cases import Case
from bedstone.bench.process import process_seconds
from bedstone.bench.subject import Subject


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of a case by a package: of a step where it decodes `steps` a sample."""

    case: Case
    package: int
    steps: int
    samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """All cases by all packages; `first_seconds` from the process's start to the first token."""

    timed: tuple[Timed, ...]
    first_seconds: float | None


def measure(
    subjects: Sequence[Subject],
    cases: Sequence[Case],
    repeats: int,
    progress: Callable[[str, int, int], None],
) -> Times:
    """Take `repeats` samples of each case, of each package in turn."""
    found: list[Timed] = []
    first: float | None = None
    for case in cases:
        drivers = [subject.driver for subject in subjects]
        if not found:
            drivers[0].sample(case, 1)
            first = process_seconds()
        steps = [driver.warm(case) for driver in drivers]
        samples: list[list[float]] = [[] for _ in drivers]
        for done in range(repeats):
            progress(str(case), done, repeats)
            for driver, count, taken in zip(drivers, steps, samples, strict=True):
                taken.append(driver.sample(case, count))
        found += [
            Timed(case, index, count, tuple(taken))
            for index, (count, taken) in enumerate(zip(steps, samples, strict=True))
        ]
    return Times(tuple(found), first)
