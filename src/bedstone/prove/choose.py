"""The best Solution for a Definition, sizes and a device, by Traces, and why not the others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

from bedstone.prove.rank import latency, newest
from bedstone.spec.definition import Definition
from bedstone.spec.identity import definition_identity, solution_identity
from bedstone.spec.solution import Solution
from bedstone.spec.trace import Evaluation, Trace

Policy = Literal["exact", "nearest"]
"""Whether a Trace must have the very sizes asked for, or the nearest ones do."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a Solution was not chosen."""

    solution: str
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The Solution to use, with the milliseconds it took; none, where every one has a reason."""

    solution: Solution | None
    latency_ms: float | None
    measured_at: Mapping[str, int] | None
    others: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    axes: Mapping[str, int]
    evaluation: Evaluation


def choose(
    definition: Definition,
    solutions: Sequence[Solution],
    traces: Iterable[Trace],
    axes: Mapping[str, int],
    hardware: str,
    policy: Policy = "exact",
) -> Choice:
    """The fastest Solution that passed at these sizes on this device.

    Args:
        definition: What is to be computed.
        solutions: Those that could be used.
        traces: What was measured, of any Definition, size and device.
        axes: A size for each variable axis.
        hardware: The device as Traces name it.
        policy: Whether sizes must be the very same.

    Returns:
        The choice; every other Solution has its reason.
    """
    seen = _by_solution(definition, traces, hardware)
    reasons: list[Reason] = []
    timed: list[tuple[float, Solution, Mapping[str, int]]] = []
    for solution in solutions:
        found = _measure(definition, solution, seen.get(solution.name, []), axes, policy)
        if isinstance(found, str):
            elsewhere = _elsewhere(solution.name, traces, hardware)
            reasons.append(Reason(solution.name, found if solution.name in seen else elsewhere))
        else:
            timed.append((found[0], solution, found[1]))
    if not timed:
        return Choice(None, None, None, tuple(reasons))
    timed.sort(key=lambda item: (item[0], item[1].name))
    best, chosen, at = timed[0]
    reasons += [Reason(s.name, f"slower: {ms:.4g} ms, not {best:.4g}") for ms, s, _ in timed[1:]]
    return Choice(chosen, best, at, tuple(reasons))


def _by_solution(
    definition: Definition, traces: Iterable[Trace], hardware: str
) -> dict[str, list[_Seen]]:
    """What was last seen of each Solution on this device, Workload by Workload."""
    own = [trace for trace in traces if trace.definition == definition.name]
    axes = {trace.workload.uuid: trace.workload.axes for trace in own}
    seen: dict[str, list[_Seen]] = {}
    for (_, device, solution, uuid), evaluation in newest(own).items():
        if device == hardware:
            seen.setdefault(solution, []).append(_Seen(axes[uuid], evaluation))
    return seen


def _elsewhere(name: str, traces: Iterable[Trace], hardware: str) -> str:
    devices = sorted({
        trace.evaluation.environment.hardware
        for trace in traces
        if trace.solution == name and trace.evaluation is not None
    })  # fmt: skip
    if not devices:
        return "never measured"
    return f"measured on {', '.join(devices)}, not on {hardware}"


def _measure(
    definition: Definition,
    solution: Solution,
    seen: Sequence[_Seen],
    axes: Mapping[str, int],
    policy: Policy,
) -> tuple[float, Mapping[str, int]] | str:
    """The time that counts for these sizes and where it was taken, or why there is none."""
    current = [one for one in seen if _is_current(definition, solution, one.evaluation)]
    if not current:
        return "changed since it was measured" if seen else "never measured"
    wanted = {name: axes[name] for name in definition.var_axes}
    here = [one for one in current if dict(one.axes) == wanted]
    if not here and policy == "nearest":
        here = [min(current, key=lambda one: _distance(one.axes, wanted))]
    if not here:
        return f"measured at other sizes: {_listed(one.axes for one in current)}"
    times = [latency(one.evaluation) for one in here]
    good = [time for time in times if time is not None]
    # one failure at these sizes is enough: another input of the same shape may meet it again
    if len(good) < len(times):
        return f"failed: {', '.join(sorted({one.evaluation.status for one in here} - {'PASSED'}))}"
    return max(good), here[0].axes


def _is_current(definition: Definition, solution: Solution, evaluation: Evaluation) -> bool:
    """Whether a Trace is of this very Definition and Solution, if it says."""
    return evaluation.record.get("definition") in (None, definition_identity(definition)) and (
        evaluation.record.get("solution") in (None, solution_identity(solution))
    )


def _distance(measured: Mapping[str, int], wanted: Mapping[str, int]) -> float:
    """How far apart sizes are: the sum of the logarithms of their quotients."""
    return sum(abs(log((measured.get(n, 0) + 1) / (size + 1))) for n, size in wanted.items())


def _listed(every: Iterable[Mapping[str, int]]) -> str:
    texts = sorted(", ".join(f"{n}={size}" for n, size in sorted(axes.items())) for axes in every)
    shown = "; ".join(texts[:3])
    return shown if len(texts) <= 3 else f"{shown}; and {len(texts) - 3} more"
