"""Solutions in C: compiled in the candidate's process and called through the kernel ABI."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch

from bedstone.errors import BedstoneError
from bedstone.prove.results import ResultError
from bedstone.prove.sandbox.calling import Calling, read_calling
from bedstone.prove.write import CALL
from bedstone.target.features import lacks, read_features
from bedstone.target.toolchain import Unit, compile_unit, find_compiler

_ALIGN = 64
_SCALARS: Mapping[str, type[ctypes.c_int32] | type[ctypes.c_float]] = {
    "i32": ctypes.c_int32,
    "f32": ctypes.c_float,
}
_CONSTANT_LENGTH = 4096


class _Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


def load_native(
    folder: Path, file: str, name: str, spec: Mapping[str, Any]
) -> Callable[..., Callable[[], None]]:
    """Compile a C Solution and find its entry.

    Args:
        folder: Its files.
        file: The one to compile; it includes others in angle brackets.
        name: The entry.
        spec: Compiler flags, and the `cache` that compiled objects are kept in.

    Returns:
        A function of the inputs and outputs in order that lays out a call and returns it.

    Raises:
        ResultError: it does not compile, exports another interface than `call.json` states, or
            needs what this machine lacks.
    """
    calling = read_calling(folder / CALL)
    try:
        library = _compiled(folder / file, spec)
    except BedstoneError as error:
        raise ResultError("COMPILE_ERROR", str(error)) from error
    lacking = lacks(name, _needs(library), read_features())
    if lacking is not None:
        raise ResultError("COMPILE_ERROR", lacking)
    every = ((name, calling), *calling.then)
    for entry, each in every:
        _require_types(library, entry, each)
    return _Kernel(library, every, _grid_runner(Path(spec["cache"]))).bind


def _require_types(library: ctypes.CDLL, entry: str, calling: Calling) -> None:
    stated, said = _constant(library, f"bs_abi_{entry}"), ", ".join(calling.types)
    if stated != said:
        message = f"`{entry}` takes `{stated}`, and `{CALL}` says `{said}`"
        raise ResultError("COMPILE_ERROR", message)


def native_unit(source: Path, options: Mapping[str, Sequence[str]]) -> Unit:
    """What a Solution's module is compiled from: its source, with the headers beside it."""
    flags, link = (tuple(options.get(name, ())) for name in ("cflags", "ld_flags"))
    return Unit((source,), flags, {}, (source.parent,), link)


def _compiled(source: Path, spec: Mapping[str, Any]) -> ctypes.CDLL:
    unit, cache = native_unit(source, spec["options"]), Path(spec["cache"])
    return ctypes.CDLL(str(compile_unit(unit, cache=cache, compiler=find_compiler())))


def _grid_runner(cache: Path) -> ctypes.CDLL:
    with as_file(files("bedstone.prove.sandbox").joinpath("grid.c")) as source:
        built = compile_unit(Unit((source,), ("-O2",)), cache=cache, compiler=find_compiler())
    return ctypes.CDLL(str(built))


def _constant(library: ctypes.CDLL, name: str) -> str:
    try:
        found = ctypes.c_char.in_dll(library, name)
    except ValueError as error:
        raise ResultError("COMPILE_ERROR", f"the module exports no `{name}`") from error
    text = ctypes.string_at(ctypes.addressof(found))
    return text[:_CONSTANT_LENGTH].decode(errors="replace")


def _needs(library: ctypes.CDLL) -> frozenset[str]:
    return frozenset(_constant(library, "bs_needs").split())


class _Kernel:
    """The launches of a kernel, which can be called with tensors."""

    def __init__(
        self,
        library: ctypes.CDLL,
        launches: tuple[tuple[str, Calling], ...],
        runner: ctypes.CDLL,
    ) -> None:
        self._library = library
        self._launches = launches
        self._run = runner.bs_run_grid
        self._run.restype = None
        self._held: list[torch.Tensor] = []

    def bind(self, *tensors: torch.Tensor) -> Callable[[], None]:
        """What runs every block of every launch, the words of the calls being laid out."""
        given = dict(zip(self._launches[0][1].tensors, tensors, strict=True))
        self._held = []
        parts = 0
        runs = []
        for entry, calling in self._launches:
            values = calling.values(given)
            numbers = [value for _, value in values]
            count = calling.parts(numbers)
            if count is not None:
                parts = self._hold(torch.full((count,), torch.nan))
            runs.append(self._launch(entry, calling, values, _words(values, given, parts)))

        def run() -> None:
            for each in runs:
                each()

        return run

    def _launch(
        self,
        entry: str,
        calling: Calling,
        values: list[tuple[str, Any]],
        words: ctypes.Array[ctypes.c_uint64],
    ) -> Callable[[], None]:
        kernel = ctypes.cast(getattr(self._library, entry), ctypes.c_void_p)
        numbers = [value for _, value in values]
        grid = _Dim3(*calling.extents(numbers))
        scratch, start = _scratch(calling.scratch(numbers))
        self._hold(scratch)

        def run() -> None:
            self._run(kernel, words, ctypes.byref(grid), ctypes.c_void_p(start))

        return run

    def _hold(self, memory: torch.Tensor) -> int:
        self._held.append(memory)
        return memory.data_ptr()


def _words(
    values: list[tuple[str, Any]], given: Mapping[str, torch.Tensor], parts: int
) -> ctypes.Array[ctypes.c_uint64]:
    words = (ctypes.c_uint64 * len(values))()
    for at, (kind, value) in enumerate(values):
        if kind == "tensor":
            words[at] = given[value].data_ptr()
        elif kind == "parts":
            words[at] = parts
        else:
            # the other half of a word stays zero
            scalar = _SCALARS[kind](value)
            ctypes.memmove(ctypes.addressof(words) + 8 * at, ctypes.addressof(scalar), 4)
    return words


def _scratch(size: int) -> tuple[torch.Tensor, int]:
    """Memory that nobody has written, and where its first aligned byte lies."""
    memory = torch.empty(size + _ALIGN, dtype=torch.uint8)
    return memory, memory.data_ptr() + -memory.data_ptr() % _ALIGN
