"""A Definition's reference as a Solution, so that it is timed exactly as Solutions are."""

from bedstone.spec.definition import Definition
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.solution import BuildSpec, Solution, SourceFile

NAME = "reference"


def reference_solution(definition: Definition) -> Solution:
    """The reference under the name `reference`, returning its outputs or writing them in place."""
    text = emit_definition(definition, "sol").value["reference"]
    return Solution(
        name=NAME,
        definition=definition.name,
        author="definition",
        spec=BuildSpec(("python",), ("any",), "main.py::timed", destination_passing=False),
        sources=(SourceFile("main.py", text + _timed(definition)),),
    )


def _timed(definition: Definition) -> str:
    """A function around `run` that puts outputs where the Definition says they go."""
    arguments = ", ".join(definition.inputs)
    lines = [f"\n\n\ndef timed({arguments}):", f"    result = run({arguments})"]
    if definition.in_place:
        lines.append("    result = result if isinstance(result, (tuple, list)) else (result,)")
    for at, name in enumerate(definition.outputs):
        if name in definition.in_place:
            lines.append(f"    {definition.in_place[name]}.copy_(result[{at}])")
    own = [at for at, name in enumerate(definition.outputs) if name not in definition.in_place]
    picked = ", ".join(f"result[{at}]" for at in own)
    lines.append(f"    return [{picked}]" if definition.in_place else "    return result")
    return "\n".join(lines) + "\n"
