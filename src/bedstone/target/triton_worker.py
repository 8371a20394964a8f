"""Compile the one kernel of a Triton source; `bedstone.target.triton` runs this as a process.

It reads a request from its input, writes the cubin where that says, and exits with 3 after a line
`FILE:LINE: MESSAGE` where the source is at fault. It imports nothing of Bedstone.
"""

import ast
import importlib.util
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError
from triton.runtime.jit import JITFunction

_REFUSED = 3
_WARP = 32
_OPTIONS = ("num_warps", "num_stages", "num_ctas")
_SHARED = "shared"


def main() -> None:
    """Answer the request on the standard input."""
    request = json.load(sys.stdin)
    source = Path(request["source"])
    kernel = _kernel(_module(source), source)
    defines = {name: _value(source, name, text) for name, text in request["defines"].items()}
    options = {name: defines.pop(name) for name in _OPTIONS if name in defines}
    shared = defines.pop(_SHARED, 0)
    made = _compiled(source, _typed(kernel, source, defines), request["capability"], options)
    if made.metadata.shared > shared:
        message = f"needs {made.metadata.shared} bytes of shared memory, its row gives {shared}"
        _refuse(source, kernel.starting_line_number, message)
    Path(request["output"]).write_bytes(made.asm["cubin"])


def _module(source: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location(source.stem, source)
    if found is None or found.loader is None:
        _refuse(source, 1, "is no Python file")
    module = importlib.util.module_from_spec(found)
    sys.dont_write_bytecode = True
    try:
        found.loader.exec_module(module)
    except SyntaxError as error:
        _refuse(source, error.lineno or 1, f"SyntaxError: {error.msg}")
    except Exception as error:  # noqa: BLE001  (the file is code: it may raise anything)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(source)]
        _refuse(source, (lines and lines[-1]) or 1, f"{type(error).__name__}: {error}")
    return module


def _kernel(module: ModuleType, source: Path) -> JITFunction:
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, JITFunction)
        and value.fn.__module__ == module.__name__
        and not name.startswith("_")
    }
    if len(found) != 1:
        names = ", ".join(f"`{name}`" for name in found) or "none"
        _refuse(source, 1, f"expected one kernel, found {names}; helpers begin with an underscore")
    return next(iter(found.values()))


def _typed(kernel: JITFunction, source: Path, values: dict[str, Any]) -> ASTSource:
    """The kernel with a type for each parameter and a value for each constant."""
    line = kernel.starting_line_number
    constants = {param.name: param.num for param in kernel.params if param.is_constexpr}
    if constants.keys() != values.keys():
        wants, given = (", ".join(sorted(names)) or "none" for names in (constants, values))
        _refuse(source, line, f"takes constants {wants}; given {given}")
    signature = {
        p.name: "constexpr" if p.is_constexpr else p.annotation_type for p in kernel.params
    }
    for name, type_ in signature.items():
        if not type_:
            message = f'parameter `{name}` has no type: expected one such as "*fp32" or "i32"'
            _refuse(source, line, message)
    return ASTSource(kernel, signature, {(constants[name],): values[name] for name in constants})


def _compiled(source: Path, typed: ASTSource, capability: int, options: dict[str, Any]) -> Any:  # noqa: ANN401  (Triton's own)
    try:
        return triton.compile(typed, GPUTarget("cuda", capability, _WARP), options)
    except CompilationError as error:
        _refuse(source, *_fault(error, source))


def _fault(error: CompilationError, source: Path) -> tuple[int, str]:
    """The line of a source that does not compile, and why; of a chain of errors the first."""
    while isinstance(error.__cause__, CompilationError):
        error = error.__cause__
    text = source.read_text(encoding="utf-8")
    start = max(text.find(error.src or "\0"), 0)
    line = text.count("\n", 0, start) + (error.node.lineno if error.node else 1)
    reason = error.error_message or error.__cause__ or "does not compile"
    return line, f"{reason}\n{text.splitlines()[line - 1]}"


def _value(source: Path, name: str, text: str) -> Any:  # noqa: ANN401  (a number or a truth)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        _refuse(source, 1, f"`{name}` is no constant: found `{text}`")


def _refuse(source: Path, line: int, message: str) -> NoReturn:
    sys.stdout.write(f"{source.name}:{line}: {message}\n")
    raise SystemExit(_REFUSED)


if __name__ == "__main__":
    main()
