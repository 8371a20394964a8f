"""Traces as JSON, one a line; a Workload without an outcome is one too.

What only we say travels where FlashInfer-Bench's reader skips it: how a run was measured, and the
two outcomes it has no name for, which it sees as errors at run time.
"""

import math
from collections.abc import Mapping
from typing import Any, get_args

from bedstone.spec.dialect import Dialect, Emission, Reading
from bedstone.spec.dialect.members import members, unless
from bedstone.spec.dialect.workload import detect_workload, emit_workload, read_workload
from bedstone.spec.fault import found
from bedstone.spec.fields import Fields, Trail
from bedstone.spec.finding import Findings
from bedstone.spec.trace import (
    SHARED_STATUSES,
    Correctness,
    Environment,
    Evaluation,
    Failed,
    Outcome,
    Passed,
    Performance,
    Status,
    Trace,
    WrongNumbers,
)

_VERDICT = "verdict"


def parse_trace(value: object, definition: str | None = None) -> Reading[Trace]:
    """The Trace of a decoded JSON value.

    Args:
        value: A Trace, or a bare Workload as SOL-ExecBench stores them.
        definition: The Definition a bare Workload belongs to.

    Returns:
        The Trace and how it was understood.
    """
    findings = Findings()
    if isinstance(value, dict) and "workload" not in value and "axes" in value:
        workload = read_workload(value, (), findings)
        if definition is None:
            findings.add("error", (), "a bare workload: expected to be told its definition")
        return Reading(Trace(definition or "", workload), "sol", findings.all())
    fields = Fields(value, (), findings)
    workload_value = fields.take("workload")
    trace = Trace(
        definition=fields.text("definition"),
        workload=read_workload(workload_value, ("workload",), findings),
        solution=fields.maybe_text("solution"),
        evaluation=_evaluation(fields.take("evaluation"), ("evaluation",), findings),
        extra=fields.rest(),
    )
    if (trace.solution is None) != (trace.evaluation is None):
        findings.add("error", (), "expected both a `solution` and an `evaluation`, or neither")
    return Reading(trace, detect_workload(workload_value), findings.all())


def _evaluation(value: object, trail: Trail, findings: Findings) -> Evaluation | None:
    if value is None:
        return None
    fields = Fields(value, trail, findings)
    record = dict(fields.take("record") or {})
    status = record.pop(_VERDICT, None) or fields.take("status")
    fields.take("status")
    return Evaluation(
        outcome=_outcome(fields, status),
        environment=_environment(
            Fields(fields.take("environment"), (*trail, "environment"), findings)
        ),
        timestamp=fields.text("timestamp"),
        log=fields.maybe_text("log") or "",
        record=record,
        extra=fields.rest(),
    )


def _outcome(fields: Fields, status: Any) -> Outcome:  # noqa: ANN401  (any JSON value)
    if status not in get_args(Status):
        fields.note("error", f"{found(status)} is no status", "status")
        status = "RUNTIME_ERROR"
    needs = {"PASSED": ("correctness", "performance"), "INCORRECT_NUMERICAL": ("correctness",)}
    given = {name: fields.take(name) for name in ("correctness", "performance")}
    for name, value in given.items():
        if (value is not None) != (name in needs.get(status, ())):
            wanted = "expected" if value is None else "not expected"
            fields.note("error", f"{wanted} where the status is `{status}`", name)
    parts = {
        name: Fields(value if value is not None else {}, (*fields.trail, name), fields.findings)
        for name, value in given.items()
    }
    if status == "PASSED":
        return Passed(_correctness(parts["correctness"]), _performance(parts["performance"]))
    if status == "INCORRECT_NUMERICAL":
        return WrongNumbers(_correctness(parts["correctness"]))
    return Failed(status)


def _correctness(fields: Fields) -> Correctness:
    extra = fields.take("extra")
    errors = {}
    for name in ("max_relative_error", "max_absolute_error"):
        errors[name] = fields.number(name, 0.0)
        if errors[name] < 0:
            fields.note("error", f"expected at least 0 or NaN, found {errors[name]}", name)
    return Correctness(
        **errors, extra=extra if isinstance(extra, dict) else None, unknown=fields.rest()
    )


def _performance(fields: Fields) -> Performance:
    numbers = {}
    for name in ("latency_ms", "reference_latency_ms", "speedup_factor"):
        numbers[name] = fields.number(name, 0.0)
        if not numbers[name] >= 0:
            fields.note("error", f"expected at least 0, found {numbers[name]}", name)
    return Performance(**numbers, extra=fields.rest())


def _environment(fields: Fields) -> Environment:
    hardware = fields.maybe_text("hardware") or fields.maybe_text("device")
    if not hardware:
        fields.note("error", "expected the device's name", "hardware")
    libs = fields.take("libs") or {}
    if not isinstance(libs, dict):
        fields.note("error", f"expected versions by library, found {found(libs)}", "libs")
        libs = {}
    return Environment(hardware or "", {str(k): str(v) for k, v in libs.items()}, fields.rest())


def emit_trace(trace: Trace, dialect: Dialect = "fib") -> Emission:
    """The Trace in a dialect; a Workload without an outcome is a bare object in SOL-ExecBench."""
    workload = emit_workload(trace.workload, dialect)
    if dialect == "sol" and trace.evaluation is None:
        return workload
    evaluation = trace.evaluation
    value: dict[str, Any] = {
        "definition": trace.definition,
        "solution": trace.solution,
        "workload": workload.value,
        "evaluation": None if evaluation is None else _emit_evaluation(evaluation),
    }
    return Emission(value | dict(trace.extra), workload.losses)


def _emit_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    status = evaluation.status
    record = dict(evaluation.record)
    if status not in SHARED_STATUSES:
        record[_VERDICT] = status
        status = "RUNTIME_ERROR"
    correctness = performance = None
    match evaluation.outcome:
        case Passed(good, timed):
            correctness, performance = _emit_correctness(good), _emit_performance(timed)
        case WrongNumbers(bad):
            correctness = _emit_correctness(bad)
        case Failed():
            pass
    return members(
        ("status", status),
        ("environment", _emit_environment(evaluation.environment)),
        ("timestamp", evaluation.timestamp),
        ("log", evaluation.log),
        ("correctness", correctness),
        ("performance", performance),
        ("record", unless(strict_numbers(record), {})),
        extra=evaluation.extra,
    )


def _emit_environment(environment: Environment) -> dict[str, Any]:
    return members(
        ("hardware", environment.hardware),
        ("libs", dict(environment.libs)),
        extra=environment.extra,
    )


def _emit_correctness(correctness: Correctness) -> dict[str, Any]:
    return members(
        ("max_relative_error", strict_numbers(correctness.max_relative_error)),
        ("max_absolute_error", strict_numbers(correctness.max_absolute_error)),
        ("extra", strict_numbers(correctness.extra)),
        extra=correctness.unknown,
    )


def _emit_performance(performance: Performance) -> dict[str, Any]:
    return members(
        ("latency_ms", performance.latency_ms),
        ("reference_latency_ms", performance.reference_latency_ms),
        ("speedup_factor", performance.speedup_factor),
        extra=performance.extra,
    )


def strict_numbers(value: Any) -> Any:  # noqa: ANN401  (any JSON value)
    """`value` with the numbers JSON has no word for as the strings `NaN` and `Infinity`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: strict_numbers(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict_numbers(item) for item in value]
    return value
