"""What is known of a run, and how a Trace keeps it."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bedstone.prove.judge import Metrics
from bedstone.prove.problem import Problem, moved_bytes
from bedstone.prove.sandbox.candidate import Call
from bedstone.prove.timing import floor_ms, summarize
from bedstone.spec.dialect.workload import emit_tolerance
from bedstone.spec.identity import definition_identity, solution_identity
from bedstone.spec.solution import Solution
from bedstone.spec.trace import Correctness, Performance


@dataclass(frozen=True, slots=True)
class Baseline:
    """Who a Solution is compared with, and the milliseconds that took."""

    name: str
    latency_ms: float


@dataclass
class Run:
    """What is known of a run so far; it grows until the run ends or fails."""

    metrics: dict[str, Metrics] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    first: Call | None = None
    build_ns: int = 0
    judged: int = 0


def latencies(run: Run) -> list[float]:
    """Milliseconds of each timed call, its setup included."""
    return [(call.ns + call.setup_ns) / 1e6 for call in run.calls]


def performance(run: Run, baseline: Baseline | None) -> Performance:
    """The median call against the baseline, or against itself where there is none."""
    latency = summarize(latencies(run)).p50
    against = latency if baseline is None else baseline.latency_ms
    return Performance(latency, against, against / latency)


def correctness(run: Run) -> Correctness:
    """The largest errors, and the metrics of each output."""
    every = run.metrics.values()
    return Correctness(
        max_relative_error=max((m.max_relative_error for m in every), default=0.0),
        max_absolute_error=max((m.max_absolute_error for m in every), default=0.0),
        extra={name: metrics.json() for name, metrics in run.metrics.items()},
    )


def misfits(run: Run) -> str:
    """Why outputs do not fit, one line each."""
    return "\n".join(
        f"`{name}`: {'; '.join(m.reasons)}; worst at {list(m.worst)}: expected {m.expected:g}, "
        f"found {m.found:g}"
        for name, m in run.metrics.items()
        if not m.fits
    )


def measured(
    problem: Problem, solution: Solution, run: Run, baseline: Baseline | None
) -> dict[str, Any]:
    """How it was measured: all that is needed to measure it again."""
    config = problem.config
    moved = moved_bytes(problem.definition, problem.sizes)
    tolerance = problem.tolerance
    return {
        "definition": definition_identity(problem.definition),
        "solution": solution_identity(solution),
        "config": config.json(),
        "tolerance": None if tolerance is None else emit_tolerance(tolerance),
        "judged": run.judged,
        "fresh_inputs": problem.fresh,
        "load_average": os.getloadavg()[0],
        "moved_bytes": moved,
        "floor_ms": None if config.bandwidth is None else floor_ms(moved, config.bandwidth),
        "baseline": None if baseline is None else baseline.name,
        "timing": _timing(problem, run),
    }


def _timing(problem: Problem, run: Run) -> dict[str, Any] | None:
    """Each number under its own name: a call with its setup, without, and the first of all."""
    if not run.calls:
        return None
    has_setup = any(call.setup_ns for call in run.calls)
    steady = summarize([call.ns / 1e6 for call in run.calls])
    on_gpu = problem.config.device == "cuda"
    return {
        "method": "CUDA events, launches hidden behind a delay" if on_gpu else "wall clock",
        "cache": "cold" if problem.config.cold else "warm",
        "scope": "setup and run" if has_setup else "run",
        "latency_ms": asdict(summarize(latencies(run))),
        "steady_ms": asdict(steady),
        "setup_ms": _median([call.setup_ns / 1e6 for call in run.calls]) if has_setup else None,
        "first_call_ms": None if run.first is None else run.first.ns / 1e6,
        "build_ms": run.build_ns / 1e6,
    }


def _median(values: Sequence[float]) -> float:
    return summarize(values).p50
