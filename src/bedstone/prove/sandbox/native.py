"""Solutions in C: compiled in the candidate's process and called through the kernel ABI.

Such a Solution is called as the runtime calls a kernel: once for each block of a grid, with a word
for each parameter. Its file `call.json` says what each word is.

    types       the parameters' types, as the module exports them in `bs_abi_<entry>`
    tensors     names of the call's arguments, inputs and then outputs, in order
    parameters  for each: {"tensor": name}, {"i32": number}, {"f32": number}, or
                {"i32": [name, axis]} for a size of one of them
    grid        for each extent a number, or [parameter, per, times]: `times` blocks for each `per`
    shared      bytes of scratch, and [parameter, bytes] for what each of its values adds
"""

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch

from bedstone.errors import BedstoneError
from bedstone.prove.results import ResultError
from bedstone.prove.write import CALL
from bedstone.target.features import lacks, read_features
from bedstone.target.toolchain import Compiler, compile_shared, find_compiler

_ALIGN = 64
_SCALARS: Mapping[str, type[ctypes.c_int32] | type[ctypes.c_float]] = {
    "i32": ctypes.c_int32,
    "f32": ctypes.c_float,
}
_CONSTANT_LENGTH = 4096


class _Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


@dataclass(frozen=True, slots=True)
class Calling:
    """What `call.json` says."""

    types: str
    tensors: tuple[str, ...]
    parameters: tuple[Mapping[str, Any], ...]
    grid: tuple[Any, ...]
    shared: tuple[int, tuple[tuple[int, int], ...]]


def load_native(folder: Path, file: str, name: str, spec: Mapping[str, Any]) -> Callable[..., None]:
    """Compile a C Solution and find its entry.

    Args:
        folder: Its files.
        file: The one to compile; it includes others in angle brackets.
        name: The entry.
        spec: Compiler flags, and the `cache` that compiled objects are kept in.

    Returns:
        A function of the inputs and outputs in order.

    Raises:
        ResultError: it does not compile, exports another interface than `call.json` states, or
            needs what this machine lacks.
    """
    calling = _read_calling(folder / CALL)
    try:
        library = _compiled(folder, file, spec)
    except BedstoneError as error:
        raise ResultError("COMPILE_ERROR", str(error)) from error
    lacking = lacks(name, _needs(library), read_features())
    if lacking is not None:
        raise ResultError("COMPILE_ERROR", lacking)
    stated = _constant(library, f"bs_abi_{name}")
    if stated != calling.types:
        message = f"`{name}` takes `{stated}`, and `{CALL}` says `{calling.types}`"
        raise ResultError("COMPILE_ERROR", message)
    return _Entry(library, name, calling, _grid_runner(Path(spec["cache"])))


def _compiled(folder: Path, file: str, spec: Mapping[str, Any]) -> ctypes.CDLL:
    built = compile_shared(
        [folder / file],
        flags=spec["options"].get("cflags", ()),
        include=[folder],
        cache=Path(spec["cache"]),
        compiler=find_compiler(),
    )
    return ctypes.CDLL(str(built))


def _grid_runner(cache: Path, compiler: Compiler | None = None) -> ctypes.CDLL:
    with as_file(files("bedstone.prove.sandbox").joinpath("grid.c")) as source:
        built = compile_shared(
            [source], flags=("-O2",), cache=cache, compiler=compiler or find_compiler()
        )
    return ctypes.CDLL(str(built))


def _read_calling(path: Path) -> Calling:
    try:
        value = json.loads(path.read_bytes())
        shared = value["shared"]
        return Calling(
            value["types"],
            tuple(value["tensors"]),
            tuple(value["parameters"]),
            tuple(value["grid"]),
            (int(shared[0]), tuple((int(at), int(each)) for at, each in shared[1])),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        message = f"a Solution in C says how it is called in `{CALL}`: {error!r}"
        raise ResultError("COMPILE_ERROR", message) from error


def _constant(library: ctypes.CDLL, name: str) -> str:
    try:
        found = ctypes.c_char.in_dll(library, name)
    except ValueError as error:
        raise ResultError("COMPILE_ERROR", f"the module exports no `{name}`") from error
    text = ctypes.string_at(ctypes.addressof(found))
    return text[:_CONSTANT_LENGTH].decode(errors="replace")


def _needs(library: ctypes.CDLL) -> frozenset[str]:
    return frozenset(_constant(library, "bs_needs").split())


class _Entry:
    """A kernel as a function of tensors."""

    def __init__(
        self, library: ctypes.CDLL, name: str, calling: Calling, runner: ctypes.CDLL
    ) -> None:
        self._library = library
        self._kernel = ctypes.cast(getattr(library, name), ctypes.c_void_p)
        self._calling = calling
        self._run = runner.bs_run_grid
        self._run.restype = None

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Run every block."""
        given = dict(zip(self._calling.tensors, tensors, strict=True))
        values = [_value(parameter, given) for parameter in self._calling.parameters]
        words = (ctypes.c_uint64 * len(values))()
        for at, (kind, value) in enumerate(values):
            # the other half of a word stays zero
            if kind == "tensor":
                words[at] = value
            else:
                scalar = _SCALARS[kind](value)
                ctypes.memmove(ctypes.addressof(words) + 8 * at, ctypes.addressof(scalar), 4)
        numbers = [value for _, value in values]
        grid = _Dim3(*(_extent(extent, numbers) for extent in self._calling.grid))
        least, per = self._calling.shared
        scratch, start = _scratch(least + sum(numbers[at] * each for at, each in per))
        self._run(self._kernel, words, ctypes.byref(grid), ctypes.c_void_p(start))
        del scratch


def _value(parameter: Mapping[str, Any], given: Mapping[str, torch.Tensor]) -> tuple[str, Any]:
    ((kind, value),) = parameter.items()
    if kind == "tensor":
        return kind, given[value].data_ptr()
    if isinstance(value, list):
        name, axis = value
        return kind, given[name].shape[axis]
    return kind, value


def _extent(extent: Any, numbers: Sequence[Any]) -> int:  # noqa: ANN401  (a JSON value)
    if isinstance(extent, int):
        return extent
    at, per, times = extent
    return int(times * -(-numbers[at] // per))


def _scratch(size: int) -> tuple[torch.Tensor, int]:
    """Memory that nobody has written, and where its first aligned byte lies."""
    memory = torch.empty(size + _ALIGN, dtype=torch.uint8)
    return memory, memory.data_ptr() + -memory.data_ptr() % _ALIGN
