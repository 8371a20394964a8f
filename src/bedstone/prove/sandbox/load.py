"""A Solution's entry as a function, from the files of its folder."""

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from bedstone.prove.results import ResultError
from bedstone.prove.sandbox.cuda import load_cuda
from bedstone.prove.sandbox.driver import CudaDriver
from bedstone.prove.sandbox.native import load_native
from bedstone.prove.sandbox.tvm_ffi import load_tvm_ffi
from bedstone.prove.write import CALL, CUDA, C

PYTHON = ("python", "pytorch", "triton", "tilelang", "cutedsl", "cute_dsl", "cutile", "tlx")
"""Languages whose entry is a Python function."""

COMPILED = ("cpp", CUDA, "cuda_cpp", "cutlass", "cublas", "cudnn")
"""Languages whose entry is bound by PyTorch or, where nothing is said, by TVM-FFI."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """An entry, how it is called, and what is to run once before it.

    `bind` is a kernel's, whose launch is ours to lay out: it does that and returns the launch.
    """

    entry: Callable[..., Any]
    destination_passing: bool
    setup: Callable[..., Any] | None = None
    bind: Callable[..., Callable[[], None]] | None = None


def load_entry(folder: Path, spec: Mapping[str, Any], device: str | None = None) -> Loaded:
    """Load a Solution into this process.

    Args:
        folder: Its files; the folder's name is the name of the package they form.
        spec: Languages, entry point, binding, calling style, compiler flags, and the `cache` that
            compiled objects are kept in.
        device: `cpu` or `cuda` where a kernel for the other is to be refused.

    Returns:
        The entry; `setup` is the function of that name beside it, if there is one.

    Raises:
        ResultError: it is in a language we cannot load, or has no such function.
    """
    languages = spec["languages"]
    file, _, name = spec["entry_point"].partition("::")
    if languages == [C] or (languages == [CUDA] and (folder / CALL).is_file()):
        return _load_kernel(folder, spec, device)
    if all(language in PYTHON for language in languages):
        module = _import(folder, file)
    elif all(language in COMPILED for language in languages) and spec["binding"] == "torch":
        module = _compile(folder, spec)
    elif all(language in COMPILED for language in languages):
        return Loaded(load_tvm_ffi(folder, name, spec), spec["destination_passing"])
    else:
        listed = ", ".join(languages)
        raise ResultError("COMPILE_ERROR", f"no builder for `{listed}`")
    entry = getattr(module, name, None)
    if not callable(entry):
        raise ResultError("COMPILE_ERROR", f"`{file}` has no function `{name}`")
    setup = getattr(module, "setup", None)
    return Loaded(entry, spec["destination_passing"], setup if callable(setup) else None)


def _load_kernel(folder: Path, spec: Mapping[str, Any], device: str | None) -> Loaded:
    """A kernel of a library, which says in `call.json` how it is called."""
    file, _, name = spec["entry_point"].partition("::")
    own = "cpu" if spec["languages"] == [C] else "cuda"
    if device not in (own, None):
        message = f"`{name}` is a kernel for `{own}`, and Solutions run on `{device}`"
        raise ResultError("COMPILE_ERROR", message)
    if own == "cpu":
        bind = load_native(folder, file, name, spec)
    else:
        bind = load_cuda(folder, file, name, spec, CudaDriver())
    return Loaded(lambda *tensors: bind(*tensors)(), destination_passing=True, bind=bind)


def _import(folder: Path, file: str) -> ModuleType:
    """The entry's module: files may import each other relatively, or by their own names."""
    sys.path[:0] = [str(folder.parent), str(folder)]
    parts = PurePosixPath(file).with_suffix("").parts
    return importlib.import_module(".".join((folder.name, *parts)))


def _compile(folder: Path, spec: Mapping[str, Any]) -> ModuleType:
    from torch.utils.cpp_extension import load  # noqa: PLC0415  (loads a compiler driver)

    kinds = (".cpp", ".cc", ".cxx", ".cu")
    sources = [str(path) for path in sorted(folder.rglob("*")) if path.suffix in kinds]
    options = spec["options"]
    module: ModuleType = load(
        name=folder.name,
        sources=sources,
        extra_include_paths=[str(folder)],
        extra_cflags=options.get("cflags"),
        extra_cuda_cflags=options.get("cuda_cflags"),
        extra_ldflags=options.get("ld_flags"),
    )
    return module
