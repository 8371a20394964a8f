"""Workloads as JSON: a bare object in SOL-ExecBench, part of a Trace in FlashInfer-Bench."""

from typing import Any

from bedstone.spec.dialect import Dialect, Emission, Loss, Reading
from bedstone.spec.dialect.members import members, unless
from bedstone.spec.fault import found
from bedstone.spec.fields import Fields, Trail
from bedstone.spec.finding import Findings
from bedstone.spec.workload import Custom, Input, Random, Scalar, Stored, Tolerance, Workload

_TYPES = ("random", "scalar", "safetensors", "custom")


def parse_workload(value: object) -> Reading[Workload]:
    """The Workload of a decoded JSON value."""
    findings = Findings()
    return Reading(read_workload(value, (), findings), detect_workload(value), findings.all())


def detect_workload(value: object) -> Dialect:
    """SOL-ExecBench's where it has a tolerance or inputs of its kind."""
    inputs = value.get("inputs") if isinstance(value, dict) else None
    kinds = inputs.values() if isinstance(inputs, dict) else ()
    custom = any(isinstance(kind, dict) and kind.get("type") == "custom" for kind in kinds)
    return "sol" if custom or (isinstance(value, dict) and "tolerance" in value) else "fib"


def read_workload(value: object, trail: Trail, findings: Findings) -> Workload:
    """The Workload at `trail` of a document."""
    fields = Fields(value, trail, findings)
    tolerance = fields.take("tolerance")
    return Workload(
        axes=fields.mapping("axes", lambda v, t: _size(v, t, findings)),
        inputs=fields.mapping("inputs", lambda v, t: _input(v, t, findings)),
        uuid=fields.text("uuid"),
        tolerance=None
        if tolerance is None
        else _tolerance(Fields(tolerance, (*trail, "tolerance"), findings)),
        extra=fields.rest(),
    )


def _size(value: Any, trail: Trail, findings: Findings) -> int:  # noqa: ANN401
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    findings.add("error", trail, f"expected an integer of at least 0, found {found(value)}")
    return 0


def _input(value: Any, trail: Trail, findings: Findings) -> Input:  # noqa: ANN401
    fields = Fields(value, trail, findings)
    given = fields.take("type")
    kind = given or ("scalar" if "value" in fields else "random")
    if given is None:
        fields.note("warning", f"no `type`: read as `{kind}`")
    match kind:
        case "random":
            return Random(fields.rest())
        case "custom":
            return Custom(fields.rest())
        case "safetensors":
            return Stored(fields.text("path"), fields.text("tensor_key"), fields.rest())
        case "scalar":
            return Scalar(_scalar(fields), fields.rest())
        case _:
            wanted = ", ".join(f"`{name}`" for name in _TYPES)
            fields.note("error", f"expected one of {wanted}, found {found(kind)}", "type")
            return Random()


def _scalar(fields: Fields) -> bool | int | float:
    value = fields.take("value")
    if isinstance(value, (bool, int, float)):
        return value
    fields.note("error", f"expected a number or a boolean, found {found(value)}", "value")
    return 0


def _tolerance(fields: Fields) -> Tolerance:
    neutral = Tolerance()
    return Tolerance(
        rtol=fields.number("max_rtol", 0.0) if "max_rtol" in fields else None,
        atol=fields.number("max_atol", 0.0) if "max_atol" in fields else None,
        matched=fields.number("required_matched_ratio", neutral.matched),
        spread=fields.number("max_spread", neutral.spread),
        steps=int(fields.number("max_steps", neutral.steps)),
        extra=fields.rest(),
    )


def emit_workload(workload: Workload, dialect: Dialect) -> Emission:
    """The Workload in a dialect, and what that dialect cannot say."""
    tolerance = workload.tolerance
    value = members(
        ("uuid", workload.uuid),
        ("axes", dict(workload.axes)),
        ("inputs", {name: emit_input(item) for name, item in workload.inputs.items()}),
        ("tolerance", None if tolerance is None else emit_tolerance(tolerance)),
        extra=workload.extra,
    )
    losses = [] if dialect == "sol" else _losses(workload)
    return Emission(value, tuple(losses))


def _losses(workload: Workload) -> list[Loss]:
    losses = [
        Loss(f"/inputs/{name}", "inputs of kind custom are unknown to its readers", fatal=True)
        for name, item in workload.inputs.items()
        if isinstance(item, Custom)
    ]
    if workload.tolerance is not None:
        losses.append(Loss("/tolerance", "kept, and ignored by its readers"))
    return losses


def emit_input(item: Input) -> dict[str, Any]:
    """The source of one input's values."""
    match item:
        case Random(extra):
            return members(("type", "random"), extra=extra)
        case Custom(extra):
            return members(("type", "custom"), extra=extra)
        case Stored(path, key, extra):
            said = [("type", "safetensors"), ("path", path), ("tensor_key", key)]
            return members(*said, extra=extra)
        case Scalar(value, extra):
            return members(("type", "scalar"), ("value", value), extra=extra)


def emit_tolerance(tolerance: Tolerance) -> dict[str, Any]:
    """A tolerance in SOL-ExecBench's words."""
    neutral = Tolerance()
    return members(
        ("max_atol", tolerance.atol),
        ("max_rtol", tolerance.rtol),
        ("required_matched_ratio", unless(tolerance.matched, neutral.matched)),
        ("max_spread", unless(tolerance.spread, neutral.spread)),
        ("max_steps", unless(tolerance.steps, neutral.steps)),
        extra=tolerance.extra,
    )
