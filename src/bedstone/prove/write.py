"""A Solution's files on disk, and what a loader must be told of them."""

from pathlib import Path
from typing import Any, Literal

from bedstone.spec.identity import solution_identity
from bedstone.spec.solution import Solution

CALL = "call.json"
"""The file of a Solution that says how a kernel is called, in C or CUDA."""

C, CUDA = "c", "cuda"


def kernel_device(solution: Solution) -> Literal["cpu", "cuda"] | None:
    """Where a kernel that is launched as its `call.json` says runs; None of any other Solution."""
    languages = solution.spec.languages
    if languages not in ((C,), (CUDA,)) or all(s.path != CALL for s in solution.sources):
        return None
    return "cpu" if languages == (C,) else "cuda"


def write_sources(solution: Solution, folder: Path) -> Path:
    """Write a Solution's files below `folder`; the package they form, named by content."""
    package = folder / f"solution_{solution_identity(solution)[:12]}"
    for source in solution.sources:
        place = package / source.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source.content, encoding="utf-8")
    return package


def build_request(solution: Solution, cache: Path) -> dict[str, Any]:
    """Languages, entry point, binding, calling style and compiler flags, as a message has them.

    `cache` is where compiled objects are kept.
    """
    spec = solution.spec
    return {
        "languages": list(spec.languages),
        "entry_point": spec.entry_point,
        "binding": spec.binding,
        "destination_passing": spec.destination_passing,
        "options": {name: list(flags) for name, flags in spec.options.items()},
        "cache": str(cache),
    }
