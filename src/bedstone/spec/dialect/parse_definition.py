"""A Definition from its JSON value, in any dialect."""

from dataclasses import replace
from typing import Any

from bedstone.spec import formula
from bedstone.spec.definition import Axis, ConstAxis, Definition, ExprAxis, TensorSpec, VarAxis
from bedstone.spec.dialect import Dialect, Reading
from bedstone.spec.element import ELEMENTS, FORMER_NAMES
from bedstone.spec.fault import found, shown
from bedstone.spec.fields import Fields, Trail
from bedstone.spec.finding import Findings, Severity, errors
from bedstone.spec.source import SourceError, find_dumped_entry, functions, parse_source

_AXIS_TYPES = ("const", "var", "expr")


def parse_definition(value: object) -> Reading[Definition]:
    """The Definition of a decoded JSON value, and how it was understood."""
    findings = Findings()
    dialect = detect_definition(value)
    reader = _Reader(dialect, findings)
    definition = reader.definition(Fields(value, (), findings))
    if dialect == "flashinfer":
        definition = _with_implied_axes(definition, findings)
    # a part that is wrong makes others look wrong too
    for check in (_check_names, _check_told, _check_constraints, _check_in_place):
        if not errors(findings.all()):
            check(definition, dialect, findings)
    return Reading(definition, dialect, findings.all())


def detect_definition(value: object) -> Dialect:
    """The dialect a value is most likely written in."""
    if not isinstance(value, dict):
        return "fib"
    if {"custom_inputs_entrypoint", "hf_id"} & value.keys() or _says(value, "expr"):
        return "sol"
    reference = value.get("reference")
    dumped = not reference or (isinstance(reference, str) and "_reference(" in reference)
    own = {"definition", "init", "check"} & value.keys()
    return "flashinfer" if own or (dumped and "def run(" not in str(reference)) else "fib"


def _says(value: dict[str, Any], kind: str) -> bool:
    axes = value.get("axes")
    axes = axes.values() if isinstance(axes, dict) else ()
    return any(isinstance(axis, dict) and axis.get("type") == kind for axis in axes)


class _Reader:
    """Reads the parts; every fault goes to the findings."""

    def __init__(self, dialect: Dialect, findings: Findings) -> None:
        self._dialect = dialect
        self._findings = findings

    def definition(self, fields: Fields) -> Definition:
        name = fields.text("name")
        op_type = self._op_type(fields)
        reference, entry = self._reference(fields)
        return Definition(
            name=name,
            op_type=op_type,
            axes=fields.mapping("axes", self._axis),
            inputs=fields.mapping("inputs", self._tensor),
            outputs=fields.mapping("outputs", self._tensor),
            reference=reference,
            entry=entry,
            tags=fields.texts("tags"),
            description=fields.maybe_text("description"),
            constraints=fields.texts("constraints"),
            custom_inputs=fields.maybe_text("custom_inputs_entrypoint"),
            init=fields.maybe_text("init"),
            extra=fields.rest(),
        )

    def _op_type(self, fields: Fields) -> str | None:
        if "op_type" not in fields and "type" in fields:
            fields.note("warning", "`type` was renamed: read as `op_type`", "type")
            return fields.text("type")
        op_type = fields.maybe_text("op_type")
        if not op_type:
            fields.note("warning", "no `op_type`: FlashInfer-Bench asks for one", "op_type")
        return op_type or None

    def _reference(self, fields: Fields) -> tuple[str, str | None]:
        text = fields.maybe_text("reference") or ""
        try:
            module = parse_source(text)
        except SourceError as error:
            fields.note("error", f"expected Python code, found {error}", "reference")
            return text, None
        if text.strip() in ("", "..."):
            message = "a draft: it can be listed and converted, not evaluated"
            fields.note("warning", message, "reference")
            return text, None
        named = functions(module)
        dumped = self._dialect == "flashinfer"
        entry = find_dumped_entry(named) if dumped else "run" if "run" in named else None
        if entry is None:
            message = "expected a top-level function `run` (a `def`, not `async` nor a variable)"
            fields.note("error", message, "reference")
        return text, entry

    def _axis(self, value: Any, trail: Trail) -> Axis:  # noqa: ANN401
        fields = Fields(value, trail, self._findings)
        given = fields.take("type")
        kind = given or ("const" if "value" in fields else "var")
        if given is None:
            fields.note("warning", f"no `type`: read as `{kind}`")
        if kind not in _AXIS_TYPES:
            wanted = ", ".join(f"`{name}`" for name in _AXIS_TYPES)
            fields.note("error", f"expected one of {wanted}, found {found(kind)}", "type")
        description = fields.maybe_text("description")
        if kind == "expr":
            return ExprAxis(fields.text("expression"), description, fields.rest())
        if kind == "const" and "value" not in fields:
            fields.note("warning", "a const axis without `value`: read as `var`")
            kind = "var"
        if kind == "const":
            return ConstAxis(fields.count("value"), description, fields.rest())
        return VarAxis(description, fields.rest())

    def _tensor(self, value: Any, trail: Trail) -> TensorSpec:  # noqa: ANN401
        fields = Fields(value, trail, self._findings)
        return TensorSpec(
            shape=self._shape(fields),
            dtype=self._dtype(fields),
            description=fields.maybe_text("description"),
            optional=fields.flag("optional", default=False),
            param=fields.maybe_text("param"),
            constant=fields.flag("constant", default=False),
            extra=fields.rest(),
        )

    def _shape(self, fields: Fields) -> tuple[str, ...] | None:
        if "shape" not in fields:
            fields.note("error", "expected `shape`: an array of axis names, or null for a scalar")
        shape = fields.take("shape")
        if shape is None:
            return None
        if not isinstance(shape, list):
            fields.note("error", f"expected an array or null, found {found(shape)}", "shape")
            return ()
        for at, entry in enumerate(shape):
            if not isinstance(entry, str) or not entry:
                message = f"expected the name of an axis, found {found(entry)}"
                fields.note("error", message, "shape", at)
        return tuple(map(str, shape))

    def _dtype(self, fields: Fields) -> str:
        dtype = fields.text("dtype")
        if dtype in FORMER_NAMES:
            fields.note("warning", f"`{dtype}` was renamed `{FORMER_NAMES[dtype]}`", "dtype")
        dtype = FORMER_NAMES.get(dtype, dtype)
        if dtype and dtype not in ELEMENTS:
            fields.note("error", f"`{shown(dtype)}` is no element type", "dtype")
        elif dtype and ELEMENTS[dtype].kind == "unknown":
            fields.note("warning", f"`{dtype}` is not an element type that can be made", "dtype")
        return dtype


def _with_implied_axes(definition: Definition, findings: Findings) -> Definition:
    """The Definition with a variable axis for each name that a shape uses and nobody declares."""
    axes = dict(definition.axes)
    for section, name, entry in _entries(definition):
        if entry not in axes and not entry.isdecimal():
            axes[entry] = VarAxis()
            trail = (section, name, "shape")
            findings.add("warning", trail, f"axis `{shown(entry)}` is not declared: read as `var`")
    return replace(definition, axes=axes)


def _entries(definition: Definition) -> list[tuple[str, str, str]]:
    return [
        (section, name, entry)
        for section, tensors in (("inputs", definition.inputs), ("outputs", definition.outputs))
        for name, spec in tensors.items()
        for entry in spec.shape or ()
    ]


def _check_names(definition: Definition, _dialect: Dialect, findings: Findings) -> None:
    for section, name, entry in _entries(definition):
        if entry not in definition.axes and not entry.isdecimal():
            kind = section[:-1]
            message = f"{kind} `{name}` refers to axis `{shown(entry)}`, which is not defined"
            findings.add("error", (section, name, "shape"), message)


def _check_told(definition: Definition, dialect: Dialect, findings: Findings) -> None:
    """A variable axis of an output must be told by an input or a constraint."""
    told = {entry for section, _, entry in _entries(definition) if section == "inputs"}
    equated = frozenset().union(*(formula.names(text) for text in definition.constraints))
    used = {entry for section, _, entry in _entries(definition) if section == "outputs"}
    severity: Severity = "warning" if dialect == "flashinfer" else "error"
    for name in definition.var_axes:
        if name in used - told - equated:
            message = "no input has this axis: make it `expr`, or state a constraint"
            findings.add(severity, ("axes", name), message)


def _check_in_place(definition: Definition, dialect: Dialect, findings: Findings) -> None:
    for name in definition.outputs:
        if name in definition.inputs and dialect == "fib":
            message = "named as an input: written in place of it, which FlashInfer-Bench refuses"
            findings.add("warning", ("outputs", name), message)


def _check_constraints(definition: Definition, dialect: Dialect, findings: Findings) -> None:
    """FlashInfer's dumps and SOL-ExecBench have prose among the expressions; the schema has not."""
    severity: Severity = "error" if dialect == "fib" else "warning"
    for at, text in enumerate(definition.constraints):
        try:
            formula.parse_formula(text)
        except formula.UndecidableError as error:
            message = f"expected an expression, found `{shown(text)}` ({error})"
            findings.add(severity, ("constraints", at), message)
