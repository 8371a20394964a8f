"""What can be said of a reference's Python text without running it."""

import ast
import warnings
from collections.abc import Collection

from bedstone.spec.definition import Definition

LONGEST = 2_000_000
"""Characters of a source that is parsed."""


class SourceError(Exception):
    """A text is not Python; the message says why."""


def parse_source(text: str) -> ast.Module:
    """The module of an untrusted Python text, not run; a `SourceError` where it is none."""
    if len(text) > LONGEST:
        raise SourceError(f"longer than {LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SourceError(str(error) or type(error).__name__) from None


def functions(module: ast.Module) -> dict[str, ast.FunctionDef]:
    """The top-level functions by name; the last of one name, as when it runs."""
    return {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}


def find_dumped_entry(named: Collection[str]) -> str | None:
    """Which function of a reference in FlashInfer's dumps computes the outputs.

    It is `run`, or the one whose name ends in `_reference`, or the only one.
    """
    if "run" in named:
        return "run"
    marked = [name for name in named if name.endswith("_reference")]
    if len(marked) == 1:
        return marked[0]
    return next(iter(named)) if len(named) == 1 else None


def parameters(function: ast.FunctionDef) -> tuple[list[str], list[str]]:
    """Every positional parameter, and those without a default."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    names = [argument.arg for argument in arguments]
    return names, names[: len(names) - len(function.args.defaults)]


def signature_faults(definition: Definition) -> list[str]:
    """Where the entry's parameters and the Definition's inputs disagree."""
    if definition.entry is None:
        return []
    function = functions(parse_source(definition.reference)).get(definition.entry)
    if function is None or function.args.vararg is not None:
        return []
    names, required = parameters(function)
    inputs = list(definition.inputs)
    faults = [f"`{definition.entry}` has no parameter for input `{n}`" for n in inputs]
    missing = [fault for fault, name in zip(faults, inputs, strict=True) if name not in names]
    if function.args.kwarg is not None:
        missing = []
    extra = [n for n in required if n not in definition.inputs]
    return missing + [f"`{definition.entry}` asks for `{n}`, which is no input" for n in extra]


def imported(text: str) -> frozenset[str]:
    """The modules a text imports, anywhere."""
    found: set[str] = set()
    for node in ast.walk(parse_source(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return frozenset(found)
