"""Names by content: the sha256 of what a Definition means, and of what a Solution would build.

The text hashed is JSON with sorted members, so no two different contents share one. Prose is left
out: a description, tags, who wrote it and what it is called change nothing.
"""

import hashlib
import json
from typing import Any

from bedstone.spec.definition import Definition, TensorSpec
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.solution import Solution

_PROSE = ("description", "tags")


def canonical(value: Any) -> bytes:  # noqa: ANN401  (any JSON value)
    """The one text of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode()


def definition_identity(definition: Definition) -> str:
    """The sha256 of everything that bears on what must be computed; inputs and outputs in order."""
    value = emit_definition(definition).value
    named = {key: item for key, item in value.items() if key not in _PROSE}
    named["axes"] = [[name, str(axis)] for name, axis in sorted(_axes(definition).items())]
    named["inputs"] = _ordered(definition.inputs.items())
    named["outputs"] = _ordered(definition.outputs.items())
    named["entry"] = definition.entry
    return _sha256(named)


def _axes(definition: Definition) -> dict[str, Any]:
    return {name: getattr(axis, "value", getattr(axis, "expression", None))
            for name, axis in definition.axes.items()}  # fmt: skip


def _ordered(tensors: Any) -> list[Any]:  # noqa: ANN401  (the items of a mapping)
    return [[name, _tensor(spec)] for name, spec in tensors]


def _tensor(spec: TensorSpec) -> list[Any]:
    shape = None if spec.shape is None else list(spec.shape)
    return [shape, spec.dtype, spec.optional, spec.param, spec.constant, dict(spec.extra)]


def solution_identity(solution: Solution) -> str:
    """The sha256 of all that a build and a call depend on, flags, targets and calling style too."""
    spec = solution.spec
    return _sha256(
        {
            "definition": solution.definition,
            "languages": list(spec.languages),
            "target_hardware": sorted(spec.target_hardware),
            "entry_point": spec.entry_point,
            "dependencies": sorted(spec.dependencies),
            "destination_passing": spec.destination_passing,
            "binding": spec.binding,
            "options": {name: list(flags) for name, flags in spec.options.items()},
            "extra": dict(spec.extra),
            "sources": sorted([source.path, source.content] for source in solution.sources),
        }
    )


def _sha256(value: Any) -> str:  # noqa: ANN401  (any JSON value)
    return hashlib.sha256(canonical(value)).hexdigest()
