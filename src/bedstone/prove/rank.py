"""Which Solution is best, by hardware: one device's times say nothing of another's.

Of several Traces of a Solution on a Workload the newest counts, so a fault that was mended is
forgotten. Order is by the share of Workloads solved, then by speed.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bedstone.prove.timing import geometric_mean
from bedstone.spec.trace import Evaluation, Passed, Trace

Key = tuple[str, str]
"""A Definition and a device."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A Solution's place on one device.

    `speedup` is the geometric mean over solved Workloads of the time of `baseline` over the
    Solution's; `wins` the Workloads on which no other is faster. Both leave out Traces whose
    times are not above 0, which `impossible` counts.
    """

    definition: str
    hardware: str
    solution: str
    solved: int
    workloads: int
    speedup: float | None
    baseline: str
    wins: int
    impossible: int
    failures: tuple[str, ...]


def newest(traces: Iterable[Trace]) -> dict[tuple[str, str, str, str], Evaluation]:
    """The latest evaluation by Definition, device, Solution and Workload."""
    found: dict[tuple[str, str, str, str], Evaluation] = {}
    for trace in traces:
        evaluation = trace.evaluation
        if evaluation is None or trace.solution is None:
            continue
        hardware = evaluation.environment.hardware
        key = (trace.definition, hardware, trace.solution, trace.workload.uuid)
        if key not in found or found[key].timestamp <= evaluation.timestamp:
            found[key] = evaluation
    return found


def latency(evaluation: Evaluation) -> float | None:
    """The milliseconds of a call that passed in a time above 0."""
    match evaluation.outcome:
        case Passed(_, performance) if performance.latency_ms > 0:
            return performance.latency_ms
        case _:
            return None


def rank(traces: Iterable[Trace]) -> list[Standing]:
    """Every Solution's standing, the best first within a Definition and device."""
    groups: dict[Key, dict[str, dict[str, Evaluation]]] = defaultdict(lambda: defaultdict(dict))
    for (definition, hardware, solution, uuid), evaluation in newest(traces).items():
        groups[definition, hardware][solution][uuid] = evaluation
    standings = []
    for (definition, hardware), solutions in sorted(groups.items()):
        workloads = {uuid for evaluations in solutions.values() for uuid in evaluations}
        best = {uuid: _fastest(uuid, solutions.values()) for uuid in workloads}
        group = [
            _standing((definition, hardware), name, evaluations, best)
            for name, evaluations in solutions.items()
        ]
        standings += sorted(group, key=lambda s: (-s.solved, -(s.speedup or 0.0), s.solution))
    return standings


def _fastest(uuid: str, solutions: Iterable[dict[str, Evaluation]]) -> float | None:
    times = [latency(evaluations[uuid]) for evaluations in solutions if uuid in evaluations]
    return min((time for time in times if time is not None), default=None)


def _standing(
    key: Key, name: str, evaluations: dict[str, Evaluation], best: dict[str, float | None]
) -> Standing:
    passed = {
        uuid: evaluation.outcome.performance
        for uuid, evaluation in evaluations.items()
        if isinstance(evaluation.outcome, Passed)
    }
    ratios = [
        p.reference_latency_ms / p.latency_ms
        for p in passed.values()
        if p.latency_ms > 0 and p.reference_latency_ms > 0
    ]
    times = {uuid: latency(evaluation) for uuid, evaluation in evaluations.items()}
    return Standing(
        *key,
        solution=name,
        solved=len(passed),
        workloads=len(best),
        speedup=geometric_mean(ratios) if ratios else None,
        baseline=_baseline(list(evaluations.values())),
        wins=sum(time is not None and time == best[uuid] for uuid, time in times.items()),
        impossible=sum(performance.latency_ms <= 0 for performance in passed.values()),
        failures=tuple(sorted({e.status for e in evaluations.values()} - {"PASSED"})),
    )


def _baseline(evaluations: Sequence[Evaluation]) -> str:
    """What the recorded speed-ups are against; another tool's Traces do not say."""
    names = {str(e.record.get("baseline") or "reference") for e in evaluations}
    return ", ".join(sorted(names))
