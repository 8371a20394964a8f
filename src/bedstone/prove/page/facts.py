"""What a page of Traces shows: a chart for each Definition and device, a point for each time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bedstone.prove.rank import latency
from bedstone.spec.trace import Evaluation, Passed, Trace


@dataclass(frozen=True, slots=True)
class Point:
    """A Solution's milliseconds on a Workload; None where it did not pass, for `status`."""

    solution: str
    workload: str
    milliseconds: float | None
    status: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The Workloads of a Definition on a device in order of size, and what is known of each.

    `floor` is the least milliseconds by Workload that moving its data takes, where the Trace says;
    `reference` the reference's.
    """

    definition: str
    hardware: str
    workloads: tuple[str, ...]
    solutions: tuple[str, ...]
    points: tuple[Point, ...]
    floor: Mapping[str, float]
    reference: Mapping[str, float]
    method: str


def charts(traces: Iterable[Trace]) -> list[Chart]:
    """The charts of all Traces that were evaluated, the newest of each kind."""
    groups: dict[tuple[str, str], dict[tuple[str, str], Trace]] = defaultdict(dict)
    for trace in traces:
        if trace.evaluation is None or trace.solution is None:
            continue
        group = groups[trace.definition, trace.evaluation.environment.hardware]
        key = (trace.workload.uuid, trace.solution)
        known = group.get(key)
        if known is None or _time(known) <= _time(trace):
            group[key] = trace
    return [_chart(*key, list(group.values())) for key, group in sorted(groups.items())]


def _time(trace: Trace) -> str:
    return "" if trace.evaluation is None else trace.evaluation.timestamp


def _chart(definition: str, hardware: str, traces: list[Trace]) -> Chart:
    workloads = {trace.workload.uuid: trace.workload.axes for trace in traces}
    order = sorted(workloads, key=lambda uuid: (sorted(workloads[uuid].values()), uuid))
    labels = _labels({uuid: workloads[uuid] for uuid in order})
    points, floor, reference, methods = [], {}, {}, set()
    for trace in traces:
        evaluation, label = trace.evaluation, labels[trace.workload.uuid]
        if evaluation is None or trace.solution is None:
            continue
        points.append(Point(trace.solution, label, latency(evaluation), evaluation.status))
        least = evaluation.record.get("floor_ms")
        if isinstance(least, (int, float)) and least > 0:
            floor[label] = float(least)
        if isinstance(evaluation.outcome, Passed):
            reference[label] = evaluation.outcome.performance.reference_latency_ms
            methods.add(_method(evaluation))
    solutions = tuple(sorted({point.solution for point in points}))
    return Chart(
        definition,
        hardware,
        tuple(labels[uuid] for uuid in order),
        solutions,
        tuple(points),
        floor,
        {label: ms for label, ms in reference.items() if ms > 0},
        "; ".join(sorted(methods)),
    )


def _labels(workloads: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """The sizes in which Workloads differ, told apart by name where none does."""
    every = list(workloads.values())
    telling = {
        n for axes in every for n, size in axes.items() if any(a.get(n) != size for a in every)
    }
    texts = {
        uuid: ", ".join(f"{n}={size}" for n, size in axes.items() if not telling or n in telling)
        for uuid, axes in workloads.items()
    }
    alike = list(texts.values())
    return {
        uuid: text if text and alike.count(text) == 1 else f"{text} ({uuid[:8]})"
        for uuid, text in texts.items()
    }


def _method(evaluation: Evaluation) -> str:
    timing: Any = evaluation.record.get("timing")
    if not isinstance(timing, Mapping):
        return "method not recorded"
    return f"{timing.get('method')}, {timing.get('cache')} cache, {timing.get('scope')}"
