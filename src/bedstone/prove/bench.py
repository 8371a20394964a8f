"""Every Solution on every Workload of a set; each Trace is kept as soon as it is known."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import BedstoneError
from bedstone.prove.baseline import NAME, reference_solution
from bedstone.prove.config import Config
from bedstone.prove.environment import hardware_name
from bedstone.prove.evaluate import evaluate
from bedstone.prove.measured import Baseline
from bedstone.prove.problem import Problem, Source
from bedstone.prove.rank import latency, newest
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.prove.trace_set import TraceSet, append_traces
from bedstone.prove.write import kernel_device
from bedstone.spec.definition import Definition
from bedstone.spec.identity import definition_identity, solution_identity
from bedstone.spec.solution import Solution
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Workload

_SETTLED = ("PASSED", "INCORRECT_NUMERICAL", "INCORRECT_SHAPE", "INCORRECT_DTYPE")
"""Outcomes that another run would not change; errors and time-outs are tried again."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A Workload that nothing was run on, and why."""

    definition: str
    workload: str
    why: str


@dataclass(frozen=True, slots=True)
class Task:
    """A Workload of a Definition and the Solutions to run on it."""

    definition: Definition
    workload: Workload
    solutions: tuple[Solution, ...]


Progress = Callable[[int, int, str], None]
"""Told how many evaluations are done, of how many, and what comes next."""


def plan_tasks(
    traces: TraceSet,
    definitions: Sequence[str] = (),
    solutions: Sequence[str] = (),
    *,
    on: str = "cpu",
    device: str | None = None,
) -> list[Task]:
    """What there is to run.

    Args:
        traces: The set.
        definitions: Names to keep; all where empty.
        solutions: Names to keep; all where empty.
        on: `cpu` or `cuda`; kernels for the other are left out.
        device: Where given, leave out what was settled on this device by the same code.

    Returns:
        Tasks with at least one Solution.
    """
    settled = _settled(traces, device) if device is not None else set()
    tasks = []
    for name, definition in sorted(traces.definitions.items()):
        if definitions and name not in definitions:
            continue
        own = [
            solution
            for solution in traces.solutions.get(name, [])
            if (not solutions or solution.name in solutions)
            and kernel_device(solution) in (on, None)
        ]
        identity = definition_identity(definition)
        for workload in traces.workloads.get(name, []):
            todo = tuple(
                s for s in own if (identity, solution_identity(s), workload.uuid) not in settled
            )
            if todo:
                tasks.append(Task(definition, workload, todo))
    return tasks


def kernels_elsewhere(traces: TraceSet, on: str) -> int:
    """How many Solutions are kernels for another device than `on`."""
    every = (solution for each in traces.solutions.values() for solution in each)
    return sum(kernel_device(solution) not in (on, None) for solution in every)


def _settled(traces: TraceSet, device: str) -> set[tuple[str, str, str]]:
    return {
        (str(e.record.get("definition")), str(e.record.get("solution")), uuid)
        for (_, hardware, _, uuid), e in newest(traces.every_trace()).items()
        if hardware == device and e.status in _SETTLED
    }


def bench(
    traces: TraceSet,
    tasks: Sequence[Task],
    config: Config,
    source: Source,
    progress: Progress = lambda _done, _total, _next: None,
    *,
    cache: Path | None = None,
) -> Iterator[Trace | Skipped]:
    """Run tasks; each Trace is in the set's files before it is handed out.

    Args:
        traces: The set.
        tasks: What to run.
        config: How.
        source: Where stored inputs lie.
        progress: Told of each evaluation before it begins.
        cache: Where what is compiled from C is kept; nothing is where None.

    Yields:
        Trace | Skipped: one of each Solution and Workload, or why a Workload was left out.
    """
    total = sum(len(task.solutions) for task in tasks)
    done = 0
    with Zygote(cache) as zygote:
        for task in tasks:
            progress(done, total, f"{task.definition.name} {_sizes(task.workload)}")
            try:
                problem = Problem(task.definition, task.workload, config, source)
                baseline = _baseline(problem, zygote)
            except BedstoneError as error:
                done += len(task.solutions)
                yield Skipped(task.definition.name, task.workload.uuid, str(error))
                continue
            for solution in task.solutions:
                label = f"{task.definition.name} {_sizes(task.workload)} {solution.name}"
                progress(done, total, label)
                evaluation = evaluate(problem, solution, zygote, baseline)
                trace = Trace(task.definition.name, task.workload, solution.name, evaluation)
                append_traces(traces.root, task.definition, solution.author, [trace])
                done += 1
                yield trace
    progress(total, total, "")


def _baseline(problem: Problem, zygote: Zygote) -> Baseline:
    """The reference timed as Solutions are; a `BedstoneError` where it fails its own trials."""
    evaluation = evaluate(problem, reference_solution(problem.definition), zygote)
    milliseconds = latency(evaluation)
    if milliseconds is None:
        raise BedstoneError(
            f"the reference of `{problem.definition.name}` does not pass itself: "
            f"{evaluation.status}: {evaluation.log[:500]}"
        )
    return Baseline(NAME, milliseconds)


def _sizes(workload: Workload) -> str:
    return " ".join(f"{name}={size}" for name, size in workload.axes.items())


def device_of(config: Config) -> str:
    """The device as Traces name it."""
    return hardware_name(config.device)
