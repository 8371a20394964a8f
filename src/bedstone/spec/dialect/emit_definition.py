"""A Definition as JSON in one dialect, and what that dialect's readers will not understand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bedstone.spec.definition import Axis, ConstAxis, Definition, ExprAxis, TensorSpec, VarAxis
from bedstone.spec.dialect import Dialect, Emission, Loss
from bedstone.spec.dialect.members import members, unless
from bedstone.spec.fault import shown
from bedstone.spec.formula import UndecidableError, parse_formula

# fmt: off
_FIB_DTYPES = frozenset((
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1",
    "int64", "int32", "int16", "int8", "bool",
))
# fmt: on
_SOL_DTYPES = _FIB_DTYPES | {"float64", "float4_e2m1fn_x2"}
_DTYPES: dict[Dialect, frozenset[str]] = {"fib": _FIB_DTYPES, "sol": _SOL_DTYPES}
_PRELUDE = "import math\nfrom typing import *\n\nimport torch\n\n\n"


def emit_definition(definition: Definition, dialect: Dialect | None = None) -> Emission:
    """The Definition in a dialect, or whole.

    Args:
        definition: What to write.
        dialect: What it cannot say is rewritten where that keeps the meaning, and listed. None
            writes everything, for a reader that takes all three.

    Returns:
        The JSON value and the losses.
    """
    losses: list[Loss] = []
    if dialect is None:
        return Emission(_object(definition, None))
    for rewrite in _REWRITES[dialect]:
        definition = rewrite(definition, losses)
    _note_dtypes(definition, dialect, losses)
    return Emission(_object(definition, dialect), tuple(losses))


def _object(definition: Definition, dialect: Dialect | None) -> dict[str, Any]:
    """Every member a reader of any dialect may want, its discriminators always written."""
    custom = definition.custom_inputs
    return members(
        ("name", definition.name),
        ("description", definition.description),
        ("op_type", definition.op_type),
        ("tags", unless(list(definition.tags), [])),
        ("axes", {name: _axis(axis) for name, axis in definition.axes.items()}),
        ("constraints", unless(list(definition.constraints), [])),
        ("custom_inputs_entrypoint", custom),
        ("inputs", _tensors(definition.inputs)),
        ("outputs", _tensors(definition.outputs)),
        ("reference", _reference(definition, dialect)),
        ("init", definition.init),
        extra=definition.extra,
    )  # fmt: skip


def _reference(definition: Definition, dialect: Dialect | None) -> str | None:
    """The reference's text; the mark of a draft where a dialect cannot do without one."""
    if definition.reference or dialect in (None, "flashinfer"):
        return unless(definition.reference, "")  # type: ignore[no-any-return]
    return "..."


def _axis(axis: Axis) -> dict[str, Any]:
    description = ("description", axis.description)
    match axis:
        case ConstAxis(value):
            return members(("type", "const"), ("value", value), description, extra=axis.extra)
        case ExprAxis(expression):
            said = [("type", "expr"), ("expression", expression)]
            return members(*said, description, extra=axis.extra)
        case VarAxis():
            return members(("type", "var"), description, extra=axis.extra)


def _tensors(tensors: Mapping[str, TensorSpec]) -> dict[str, Any]:
    return {name: _tensor(spec) for name, spec in tensors.items()}


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    shape = None if spec.shape is None else list(spec.shape)
    return {"shape": shape} | members(
        ("dtype", spec.dtype),
        ("optional", unless(spec.optional, neutral=False)),
        ("param", spec.param),
        ("constant", unless(spec.constant, neutral=False)),
        ("description", spec.description),
        extra=spec.extra,
    )


Rewrite = Callable[[Definition, list[Loss]], Definition]


def _without_computed_axes(definition: Definition, losses: list[Loss]) -> Definition:
    """Computed axes become variable, with a constraint that says what they are."""
    axes = dict(definition.axes)
    constraints = list(definition.constraints)
    for name, axis in definition.axes.items():
        if isinstance(axis, ExprAxis):
            axes[name] = VarAxis(axis.description, axis.extra)
            constraints.append(f"{name} == {axis.expression}")
            message = "a computed axis becomes a variable one and a constraint nobody checks there"
            losses.append(Loss(f"/axes/{name}", message))
    return replace(definition, axes=axes, constraints=tuple(constraints))


def _without_literal_sizes(definition: Definition, losses: list[Loss]) -> Definition:
    """A size written as a literal becomes a const axis."""
    axes = dict(definition.axes)

    def named(section: str, tensors: Mapping[str, TensorSpec]) -> dict[str, TensorSpec]:
        out = {}
        for name, spec in tensors.items():
            literal = [entry for entry in spec.shape or () if entry.isdecimal()]
            for entry in literal:
                axes[f"size_{entry}"] = ConstAxis(int(entry))
                message = f"the literal size {entry} becomes axis `size_{entry}`"
                losses.append(Loss(f"/{section}/{name}/shape", message))
            shape = spec.shape and tuple(f"size_{e}" if e.isdecimal() else e for e in spec.shape)
            out[name] = replace(spec, shape=shape)
        return out

    inputs = named("inputs", definition.inputs)
    outputs = named("outputs", definition.outputs)
    return replace(definition, axes=axes, inputs=inputs, outputs=outputs)


def _without_shared_names(definition: Definition, losses: list[Loss]) -> Definition:
    """An output named as an input is renamed: that both are one memory is no longer said."""
    outputs = {}
    for name, spec in definition.outputs.items():
        new = f"{name}_out" if name in definition.inputs else name
        if new != name:
            message = f"written in place of the input: becomes a separate output `{new}`"
            losses.append(Loss(f"/outputs/{name}", message))
        outputs[new] = spec
    return replace(definition, outputs=outputs)


def _with_run(definition: Definition, losses: list[Loss]) -> Definition:
    """The reference's entry under the name `run`, with the imports it takes for granted."""
    entry = definition.entry
    if entry in (None, "run"):
        if entry is None:
            message = "a draft reference: expected a function `run`"
            losses.append(Loss("/reference", message, fatal=True))
        return definition
    arguments = ", ".join(definition.inputs)
    keywords = ", ".join(f"{name}={name}" for name in definition.inputs)
    text = definition.reference.rstrip("\n")
    text = text if "import torch" in text else _PRELUDE + text
    wrapped = f"{text}\n\n\ndef run({arguments}):\n    return {entry}({keywords})\n"
    losses.append(Loss("/reference", f"`run` is added, which calls `{entry}`"))
    return replace(definition, reference=wrapped, entry="run")


def _with_op_type(definition: Definition, losses: list[Loss]) -> Definition:
    if definition.op_type is not None:
        return definition
    losses.append(Loss("/op_type", "missing: becomes `unknown`"))
    return replace(definition, op_type="unknown")


def _noting_ignored(definition: Definition, losses: list[Loss]) -> Definition:
    """What stays in the file as a member that FlashInfer-Bench's readers drop."""
    for name, spec in definition.inputs.items():
        if spec.optional:
            losses.append(Loss(f"/inputs/{name}/optional", "kept, and ignored by its readers"))
    if definition.custom_inputs is not None:
        message = "kept, and ignored by its readers: inputs of kind custom have no equal"
        losses.append(Loss("/custom_inputs_entrypoint", message))
    return definition


def _noting_prose(definition: Definition, losses: list[Loss]) -> Definition:
    for at, text in enumerate(definition.constraints):
        try:
            parse_formula(text)
        except UndecidableError:
            message = f"`{shown(text)}` is no expression"
            losses.append(Loss(f"/constraints/{at}", message, fatal=True))
    return definition


def _note_dtypes(definition: Definition, dialect: Dialect, losses: list[Loss]) -> None:
    known = _DTYPES.get(dialect)
    if known is None:
        return
    for section, tensors in (("inputs", definition.inputs), ("outputs", definition.outputs)):
        for name, spec in tensors.items():
            if spec.dtype not in known:
                message = f"element type `{spec.dtype}` is not among its own"
                losses.append(Loss(f"/{section}/{name}/dtype", message, fatal=True))


_REWRITES: dict[Dialect, tuple[Rewrite, ...]] = {
    "fib": (
        _without_computed_axes,
        _without_literal_sizes,
        _with_run,
        _without_shared_names,
        _with_op_type,
        _noting_ignored,
        _noting_prose,
    ),
    "flashinfer": (_without_computed_axes, _without_literal_sizes),
    "sol": (_with_run, _without_shared_names),
}
