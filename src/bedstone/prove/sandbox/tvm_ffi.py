"""Solutions in C++ or CUDA whose entry is exported through TVM-FFI, by TVM-FFI's own builder."""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bedstone.prove.results import ResultError

_CPP = frozenset({".cc", ".cpp", ".cxx"})
_CUDA = frozenset({".cu"})
_PACKAGE = "apache-tvm-ffi"


def load_tvm_ffi(folder: Path, name: str, spec: Mapping[str, Any]) -> Callable[..., Any]:
    """Compile a Solution, unless that has been done, and find its entry.

    Args:
        folder: Its files.
        name: What the entry is exported as.
        spec: Compiler flags, and the `cache` that libraries are kept in.

    Returns:
        The exported function, which takes PyTorch's tensors.

    Raises:
        ResultError: TVM-FFI is not installed, the sources do not compile, or the library exports no
            such function.
    """
    built = Path(spec["cache"]) / f"{_identity(folder, spec)}.tvm_ffi.so"
    if not built.exists():
        _compile(folder, spec, built)
    try:
        return getattr(import_module("tvm_ffi").load_module(str(built)), name)  # type: ignore[no-any-return]
    except AttributeError as error:
        raise ResultError("COMPILE_ERROR", f"TVM-FFI finds no `{name}` exported") from error


def _identity(folder: Path, spec: Mapping[str, Any]) -> str:
    """The sha256 of all that a build depends on."""
    try:
        release = version(_PACKAGE)
    except ModuleNotFoundError as error:
        languages = ", ".join(spec["languages"])
        message = (
            f"`{languages}` with binding `tvm-ffi` needs the package `{_PACKAGE}`: install "
            "`bedstone[tvm-ffi]`, or bind it by PyTorch (binding `torch`)"
        )
        raise ResultError("COMPILE_ERROR", message) from error
    files = [(str(path.relative_to(folder)), path.read_text()) for path in _files(folder)]
    text = json.dumps([release, files, spec["options"]])
    return hashlib.sha256(text.encode()).hexdigest()


def _compile(folder: Path, spec: Mapping[str, Any], built: Path) -> None:
    """Compile beside the place, then rename: two processes may be at it."""
    files, options = _files(folder), spec["options"]
    if not any(path.suffix in _CPP | _CUDA for path in files):
        listed = ", ".join(f"`{suffix}`" for suffix in sorted(_CPP | _CUDA))
        raise ResultError("COMPILE_ERROR", f"no file ends in one of {listed}")
    # its builder calls `ninja`, which pip may have put beside this interpreter
    found = os.environ.get("PATH", os.defpath)  # noqa: TID251  (the candidate's own process)
    os.environ["PATH"] = f"{found}:{Path(sys.executable).parent}"  # noqa: TID251  (as above)
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent, prefix=".build-") as scratch:
        try:
            made = import_module("tvm_ffi.cpp").build(
                name="solution",
                cpp_files=[str(path) for path in files if path.suffix in _CPP],
                cuda_files=[str(path) for path in files if path.suffix in _CUDA],
                extra_cflags=options.get("cflags"),
                extra_cuda_cflags=options.get("cuda_cflags"),
                extra_ldflags=options.get("ld_flags"),
                extra_include_paths=[str(folder)],
                build_directory=scratch,
            )
        except (RuntimeError, OSError, ValueError) as error:
            raise ResultError("COMPILE_ERROR", str(error)) from error
        Path(made).replace(built)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
