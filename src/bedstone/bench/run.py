"""A whole run: packages loaded, the machine measured, every case timed."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bedstone.bench.cases import Grid, tokens_needed
from bedstone.bench.machine import DeviceName, measure_machine
from bedstone.bench.measure import Timed, Times, measure
from bedstone.bench.rates import Rates
from bedstone.bench.record import Record, Result
from bedstone.bench.spread import Spread
from bedstone.bench.subject import LoadOptions, Subject, load_subject
from bedstone.build.request import Package

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """What to time and how: `repeats` samples of each case of `grid` on `device`.

    `checkpoint` is where the packages' weights are now; None is where they were at the compile.
    """

    grid: Grid
    device: DeviceName
    repeats: int
    cache: Path
    threads: int | None = None
    checkpoint: str | None = None


def bench(packages: Sequence[Package], wish: Wish, progress: Progress) -> Record:
    """Time one package, or two in turns.

    The first token comes before anything else is measured: it says how soon a process has one.
    Raises what a load raises, and a `CallerError` for a case that a package does not serve.
    """
    cases, *_ = [wish.grid.cases(package.lock) for package in packages]
    batch = max(case.batch for case in cases)
    with ExitStack() as held:
        subjects = []
        for package in packages:
            progress(f"load {package.path.name}", 0, 1)
            tokens = tokens_needed(cases, package.lock)
            options = LoadOptions(
                wish.device, tokens, batch, wish.cache, wish.threads, wish.checkpoint
            )
            subjects.append(load_subject(package, options, held))
        times = measure(subjects, cases, wish.repeats, progress)
        progress("machine", 0, 1)
        machine = measure_machine(wish.device)
        progress("plan", 0, 1)
        return _record(wish, subjects, times, machine)


def _record(wish: Wish, subjects: Sequence[Subject], times: Times, machine: Rates) -> Record:
    return Record(
        device=wish.device,
        machine=machine,
        packages=tuple(subject.ran for subject in subjects),
        results=tuple(_result(timed, subjects, machine) for timed in times.timed),
        first_seconds=times.first_seconds,
    )


def _result(timed: Timed, subjects: Sequence[Subject], machine: Rates) -> Result:
    return Result(
        case=timed.case,
        package=timed.package,
        steps=timed.steps,
        seconds=Spread.of(timed.samples),
        samples=timed.samples,
        cost=subjects[timed.package].planned.cost(timed.case),
        machine=machine,
    )
