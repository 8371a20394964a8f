"""`bedstone define show`: one Definition in a form to read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bedstone.cli.define.options import RepairOption, read_documents
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.table import columns
from bedstone.errors import CallerError
from bedstone.spec.definition import Axis, ConstAxis, Definition, ExprAxis, TensorSpec
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.identity import definition_identity


def command(
    path: Annotated[Path, typer.Argument(metavar="FILE|SET", help="A Definition, or a set.")],
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Which Definition of a set.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Print the reference's code too.")
    ] = False,
    repair: RepairOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a Definition: axes, inputs and outputs, constraints, identity."""
    definition = _definition(path, name, mend=repair)
    if as_json:
        value = emit_definition(definition).value
        print_json({"identity": definition_identity(definition), "definition": value})
        return
    print("\n".join(_lines(definition)))
    if reference:
        print(f"\n{definition.reference}")


def _definition(path: Path, name: str | None, *, mend: bool) -> Definition:
    if path.is_dir():
        from bedstone.prove.trace_set import read_trace_set

        if name is None:
            raise CallerError(f"`{path}` is a set: expected the name of a definition after it")
        return read_trace_set(path).definition(name)
    where, parsed = read_documents(path, mend=mend)[0]
    return parse_definition(parsed.value).require(where)


def _lines(definition: Definition) -> list[str]:
    entry = "a draft" if definition.entry is None else f"`{definition.entry}`"
    lines = [
        f"{definition.name}   {definition.op_type or 'no op type'}   reference: {entry}",
        *([definition.description] if definition.description else []),
        f"identity {definition_identity(definition)}",
        *([f"tags {', '.join(definition.tags)}"] if definition.tags else []),
    ]
    axes = [(f"  {name}", _axis(axis)) for name, axis in definition.axes.items()]
    for title, rows in (
        ("axes", axes),
        ("inputs", _tensors(definition.inputs, {})),
        ("outputs", _tensors(definition.outputs, definition.in_place)),
    ):
        lines += ["", title, *(columns(rows) if rows else ["  none"])]
    if definition.constraints:
        lines += ["", "constraints", *(f"  {text}" for text in definition.constraints)]
    return lines


def _axis(axis: Axis) -> str:
    match axis:
        case ConstAxis(value):
            return str(value)
        case ExprAxis(expression):
            return f"= {expression}"
        case _:
            return "var"


def _tensors(
    tensors: Mapping[str, TensorSpec], in_place: dict[str, str]
) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"  {name}",
            "scalar" if spec.shape is None else f"[{', '.join(spec.shape)}]",
            spec.dtype,
            "optional"
            if spec.optional
            else f"in place of {in_place[name]}"
            if name in in_place
            else "",
        )
        for name, spec in tensors.items()
    ]
