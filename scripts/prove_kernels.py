"""Hold every kernel of hardware sets against its Definition, at the sizes of all known models.

    PYTHONPATH=src python scripts/prove_kernels.py OUT --jobs 2                 every CPU set here
    PYTHONPATH=src python scripts/prove_kernels.py OUT --target hopper --build  needs no GPU
    PYTHONPATH=src python scripts/prove_kernels.py OUT --target hopper --jobs 14 --seconds 500
    PYTHONPATH=src:tests python scripts/prove_kernels.py OUT --target hopper --jobs 14 --inside

Each is tried with seeded inputs as `bedstone define bench` tries it, but timed once only. With
`--inside` a job calls CUDA kernels itself, by the harness of the tests, and times nothing: to open
the GPU anew for each, in a process of its own, takes longer than the call. One that faults ends its
job.

What is known is in `OUT.N.jsonl`, a line as soon as it is known, N being a job; another run goes on
from there. `OUT` sums up. Exits 1 where one does not pass, 3 where `--seconds` ended it before all
was tried.
"""

import argparse
import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from bedstone.checkpoint.shapes import shape_names
from bedstone.errors import BedstoneError
from bedstone.library.kernel import CacheType
from bedstone.prove.build import build_kernels
from bedstone.prove.config import Config
from bedstone.prove.environment import hardware_name
from bedstone.prove.evaluate import evaluate
from bedstone.prove.own.problems import OwnProblem
from bedstone.prove.own.sets import problems_of, sources_of
from bedstone.prove.problem import Problem, Source
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.runtime.cuda.driver import CudaError
from bedstone.spec.solution import Solution
from bedstone.target.cache import user_cache
from bedstone.target.sources import Sources

CONFIG = Config(trials=1, warmup=0, iterations=3, samples=1, cold=False, seconds=900)
FAILED, UNFINISHED = 1, 3
TABLES: tuple[CacheType, ...] = ("f32", "bf16")
BY_CHANCE = ("REWARD_HACK", "TIMEOUT")
"""What a machine with much else to do may cause: tried again when nothing else is."""

Line = dict[str, Any]
Judge = Callable[["Task", Problem, str, Solution], tuple[str, str]]
"""The status of a kernel, by its name and as a Solution, on a posed problem; and why."""


@dataclass(frozen=True, slots=True)
class Task:
    """A problem; `label` is its Definition's name, and which of several of that name it is."""

    label: str
    problem: OwnProblem
    sources: tuple[Sources, ...]


def main() -> int:
    """Try every problem; whether one failed."""
    given = _arguments()
    # a process a core: threads of its own would only wait for each other
    torch.set_num_threads(1)
    sources = sources_of(given.target)
    tasks = _tasks(sources, given.config, given.only)
    print(f"{len(tasks)} problems", file=sys.stderr)
    if given.build:
        return _build(tasks, given.cache)
    config = CONFIG if sources[0].hardware.vendor == "cpu" else replace(CONFIG, device="cuda")
    deadline = monotonic() + given.seconds
    judges = _inside if given.inside else _apart
    judging = partial(judges, given.cache, sources[0].hardware.name)
    _side_by_side(tasks, partial(_try_all, config, judging), given, deadline)
    again = {_key(line) for line in _known(given.out) if line.get("status") in BY_CHANCE}
    if again and monotonic() < deadline:
        lines = _lines_of(given.out, given.jobs)
        _try_all(config, judging, tasks, lines, again=again, deadline=deadline)
    summary = _summary(tasks, config, given, list(sources))
    given.out.write_text(json.dumps(summary, indent=2) + "\n")
    if summary["failures"]:
        return FAILED
    return 0 if summary["definitions"] == len(tasks) else UNFINISHED


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", action="append", default=[], metavar="SET")
    parser.add_argument("--config", action="append", default=[], metavar="MODEL")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--build", action="store_true", help="Only compile.")
    parser.add_argument("--inside", action="store_true", help="Call CUDA kernels from the jobs.")
    parser.add_argument("--cache", type=Path, default=user_cache())
    return parser.parse_args()


def _tasks(sources: Sequence[Sources], models: Sequence[str], only: Sequence[str]) -> list[Task]:
    seen: Counter[str] = Counter()
    tasks = []
    for problem, those in problems_of(sources, models, only):
        name = problem.definition.name
        seen[name] += 1
        tasks.append(Task(f"{name} {seen[name]}", problem, those))
    return tasks


def _build(tasks: Sequence[Task], cache: Path) -> int:
    every = (solution for task in tasks for solution in task.problem.solutions(task.sources))
    told = lambda done, total: print(f"\r{done}/{total}", end="", file=sys.stderr)  # noqa: E731
    built = build_kernels(every, cache / "solutions", cache / "modules", told)
    print(f"\n{built.compiled} of {built.modules} modules compiled", file=sys.stderr)
    for name, why in built.failed.items():
        print(f"{name}: {why}", file=sys.stderr)
    return FAILED if built.failed else 0


def _side_by_side(
    tasks: Sequence[Task],
    trying: Callable[..., None],
    given: argparse.Namespace,
    deadline: float,
) -> None:
    """Each job takes every so many-th problem that is not known yet."""
    known = {line["done"] for line in _known(given.out) if "done" in line}
    # by the digest at a name's end: entries and models mixed, so that jobs take equally long
    left = sorted(
        (task for task in tasks if task.label not in known),
        key=lambda task: task.problem.definition.name[::-1],
    )
    forking = multiprocessing.get_context("fork")
    jobs = [
        forking.Process(
            target=trying,
            args=(left[at :: given.jobs], _lines_of(given.out, at)),
            kwargs={"deadline": deadline},
        )
        for at in range(given.jobs)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()


def _try_all(
    config: Config,
    judging: Callable[[], AbstractContextManager[Judge]],
    tasks: Sequence[Task],
    lines: Path,
    *,
    again: set[tuple[str, ...]] | None = None,
    deadline: float = float("inf"),
) -> None:
    """Try problems until time is up; of those to be tried `again` no other."""
    with judging() as judge, lines.open("a") as out:
        for task in tasks:
            if monotonic() > deadline:
                break
            for line in _tried(task, config, judge, again):
                out.write(json.dumps(line) + "\n")
            if again is None:
                out.write(json.dumps({"done": task.label}) + "\n")
            out.flush()


def _tried(
    task: Task, config: Config, judge: Judge, again: set[tuple[str, ...]] | None
) -> Iterator[Line]:
    problem = task.problem
    solutions = problem.solutions(task.sources)
    kernels = [name for _ in task.sources for name in problem.kernels]
    for workload in problem.workloads:
        where = {"definition": problem.definition.name, "axes": dict(workload.axes)}
        todo = [
            (name, s)
            for name, s in zip(kernels, solutions, strict=True)
            if again is None or _key({**where, "solution": s.name}) in again
        ]
        if not todo:
            continue
        try:
            posed = Problem(problem.definition, workload, config, Source())
        except BedstoneError as error:
            yield {**where, "solution": "", "status": "SKIPPED", "log": str(error)}
            continue
        for name, solution in todo:
            status, log = judge(task, posed, name, solution)
            log = "" if status == "PASSED" else log[:500]
            yield {**where, "solution": solution.name, "status": status, "log": log}


@contextmanager
def _apart(cache: Path, _: str) -> Iterator[Judge]:
    """Each kernel in a process of its own, as the sandbox runs Solutions."""
    with Zygote(cache / "solutions") as zygote:

        def judge(_: Task, posed: Problem, __: str, solution: Solution) -> tuple[str, str]:
            found = evaluate(posed, solution, zygote)
            return found.status, found.log

        yield judge


@contextmanager
def _inside(cache: Path, hardware: str) -> Iterator[Judge]:
    """CUDA kernels called here, by the harness of the tests."""
    from gpu_judged import judged  # noqa: PLC0415 - needs a GPU's driver
    from kernels.gpu_library import GpuLibrary  # noqa: PLC0415

    modules = cache / "modules"
    modules.mkdir(parents=True, exist_ok=True)
    libraries = [GpuLibrary(hardware, modules, tables, compiled=True) for tables in TABLES]
    named = [(each, dict(each.kernels.named)) for each in libraries]
    lost = ""

    def judge(task: Task, posed: Problem, name: str, _: Solution) -> tuple[str, str]:
        nonlocal lost
        if lost:
            raise SystemExit(lost)
        kernel = task.problem.kernels[name]
        library = next(each for each, theirs in named if theirs.get(name) == kernel)
        numbers = {**task.problem.numbers, **posed.sizes}
        try:
            found = judged(library, name, posed.definition, posed.trials[0], numbers)
        except AssertionError as error:
            return "RUNTIME_ERROR", str(error)
        except CudaError as error:
            # nothing more can be done in this process: what is left is another run's
            lost = f"`{name}`: {error}"
            return "RUNTIME_ERROR", str(error)
        wrong = {output: metrics for output, metrics in found.items() if not metrics.fits}
        return ("INCORRECT_NUMERICAL", str(wrong)) if wrong else ("PASSED", "")

    yield judge


def _lines_of(out: Path, job: int) -> Path:
    return out.with_name(f"{out.name}.{job}.jsonl")


def _known(out: Path) -> list[Line]:
    """All lines, the last of a Solution on a Workload alone."""
    found: dict[tuple[str, ...], Line] = {}
    for path in sorted(out.parent.glob(f"{out.name}.*.jsonl")):
        for text in path.read_text().splitlines():
            line = json.loads(text)
            found[_key(line)] = line
    return list(found.values())


def _key(line: Line) -> tuple[str, ...]:
    if "done" in line:
        return (line["done"],)
    return (line["definition"], str(line["axes"]), line["solution"])


def _summary(
    tasks: Sequence[Task], config: Config, given: argparse.Namespace, sources: Sequence[Sources]
) -> dict[str, Any]:
    lines = _known(given.out)
    done = {line["done"] for line in lines if "done" in line}
    tried = [line for line in lines if "status" in line]
    mine = [task.problem for task in tasks if task.label in done]
    return {
        "hardware": hardware_name(config.device),
        "sets": [each.hardware.name for each in sources],
        "models": given.config or shape_names(),
        "of": len(tasks),
        "definitions": len(mine),
        "entries": len({problem.kernel.entry for problem in mine}),
        "workloads": sum(len(problem.workloads) for problem in mine),
        "evaluations": dict(Counter(line["status"] for line in tried)),
        "failures": [line for line in tried if line["status"] != "PASSED"],
        "config": config.json() | {"inside": given.inside},
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BedstoneError as error:
        print(f"prove_kernels.py: error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
