"""A kernel of a hardware set as a Solution: its sources, and how it is called."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bedstone.errors import KernelError
from bedstone.library.kernel import (
    MAPS,
    ONE_THREAD,
    Boxes,
    Dim,
    Extent,
    Kernel,
    Param,
    Shared,
    Stage,
)
from bedstone.prove.write import CALL, C
from bedstone.spec.axes import bindings
from bedstone.spec.definition import Definition
from bedstone.spec.manifest import ScalarParam
from bedstone.spec.solution import BuildSpec, Solution, SourceFile
from bedstone.target.sources import Sources

AUTHOR = "bedstone"

_LANGUAGES = {".c": (C, "cflags"), ".cu": ("cuda", "cuda_cflags")}
"""The language of a source, and what its compiler's flags are called."""

_INCLUDE = re.compile(r"^\s*#include [<\"]([\w./]+)[>\"]", re.MULTILINE)

Numbers = Mapping[str, int | float]


def kernel_solution(
    kernel: Kernel,
    definition: Definition,
    numbers: Numbers,
    sources: Sources,
    name: str | None = None,
) -> Solution:
    """A kernel as a hardware set has it.

    Args:
        kernel: Of the catalog.
        definition: What it computes at its sizes.
        numbers: A number for each scalar parameter that no tensor tells.
        sources: The set's files.
        name: What the set calls the kernel, where it is compiled under another name.

    Returns:
        A Solution with every header its source includes. It is named after the Definition, what
        tells the kernel from others of its entry, and the set: names are unique among all of a
        data set's in FlashInfer-Bench.

    Raises:
        KernelError: a parameter is told by nothing, or the source is in no language of these.
    """
    said = _calling(kernel, definition, numbers, sources.hardware.arch)
    calling = json.dumps(said, indent=2) + "\n"
    hardware, path = sources.hardware.name, sources.source(kernel.source)
    if path.suffix not in _LANGUAGES:
        raise KernelError(f"`{path.name}` of hardware set `{hardware}` is neither C nor CUDA")
    language, flags = _LANGUAGES[path.suffix]
    return Solution(
        name=".".join((definition.name, *_variant(name or kernel.entry, definition), hardware)),
        definition=definition.name,
        author=AUTHOR,
        spec=BuildSpec(
            languages=(language,),
            target_hardware=(hardware,),
            entry_point=f"{path.name}::{kernel.launches[0].entry}",
            options={flags: (*sources.flags, *_defines(kernel))},
        ),
        sources=(*_files(path, sources), SourceFile(CALL, calling)),
        description=f"The kernel `{name or kernel.entry}` of hardware set `{hardware}`.",
    )


def _variant(name: str, definition: Definition) -> tuple[str, ...]:
    """What follows the entry in a kernel's name; the Definition's begins with the entry alone."""
    words = name.split("_")
    ends = range(len(words), 0, -1)
    entry = next(
        (end for end in ends if definition.name.startswith("_".join((*words[:end], "")))),
        len(words),
    )
    return ("_".join(words[entry:]),) if words[entry:] else ()


def _defines(kernel: Kernel) -> list[str]:
    return [f"-D{name}={value}" for name, value in sorted(kernel.defines.items())]


def _files(source: Path, sources: Sources) -> Iterator[SourceFile]:
    """The source and, in the order they are met, the headers below it."""
    waiting: list[tuple[str, Path]] = [(source.name, source)]
    seen = set()
    while waiting:
        name, path = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        text = path.read_text(encoding="utf-8")
        yield SourceFile(name, text)
        waiting += [(header, found) for header, found in _headers(text, sources)]


def _headers(text: str, sources: Sources) -> Iterator[tuple[str, Path]]:
    """The set's own files among those a text includes; the compiler has the others."""
    for header in _INCLUDE.findall(text):
        found = next((f / header for f in sources.folders if (f / header).is_file()), None)
        if found is not None:
            yield header, found


def _calling(kernel: Kernel, definition: Definition, numbers: Numbers, arch: str) -> dict[str, Any]:
    own = [name for name in definition.outputs if name not in definition.in_place]
    first, *others = (_launch(kernel, stage, definition, numbers) for stage in kernel.launches)
    del first["entry"]
    return {
        "tensors": [*definition.inputs, *own],
        **first,
        **({"then": others} if others else {}),
        **_of_a_gpu(kernel, arch),
    }


def _map(boxes: Boxes, at: Mapping[str, int]) -> list[Any]:
    rows = None if boxes.rows is None else at[boxes.rows]
    return [boxes.param, rows, [at[name] for name in boxes.width], boxes.height]


def _launch(
    kernel: Kernel, stage: Stage, definition: Definition, numbers: Numbers
) -> dict[str, Any]:
    at = {param.name: index for index, param in enumerate(stage.params)}
    told = bindings(definition)
    passed: dict[str, dict[str, Any]] = {}
    if kernel.boxes:
        passed[MAPS] = {"maps": [_map(boxes, at) for boxes in kernel.boxes]}
    first = stage.entry == kernel.launches[0].entry
    for name, dims in kernel.parts.items():
        passed[name] = {"parts": [_dim(dim, at) for dim in dims] if first else None}
    return {
        "entry": stage.entry,
        "types": stage.abi,
        "parameters": [
            passed.get(param.name) or _parameter(param, told, numbers) for param in stage.params
        ],
        "grid": [_extent(extent, at) for extent in stage.grid],
        "shared": _shared(stage.shared, at),
    }


def _dim(dim: Dim, at: Mapping[str, int]) -> list[Any]:
    return [[at[name] for name in dim.params], dim.per, dim.more]


def _of_a_gpu(kernel: Kernel, arch: str) -> dict[str, Any]:
    """What a GPU is told beside: threads, blocks that share memory, whether launches overlap."""
    if kernel.block == ONE_THREAD:
        return {}
    cluster = list(kernel.cluster) if kernel.cluster else None
    block = list(kernel.block)
    return {"arch": arch, "block": block, "cluster": cluster, "overlaps": kernel.pdl}


def _parameter(
    param: Param, told: Mapping[str, tuple[str, int]], numbers: Numbers
) -> dict[str, Any]:
    if not isinstance(param.type, ScalarParam):
        return {"tensor": param.name}
    kind = param.type.type
    if param.name in told:
        return {kind: list(told[param.name])}
    if param.name not in numbers:
        raise KernelError(f"nothing tells the parameter `{param.name}`")
    return {kind: numbers[param.name]}


def _extent(extent: Extent, at: Mapping[str, int]) -> int | list[int]:
    return extent.times if extent.param is None else [at[extent.param], extent.per, extent.times]


def _shared(shared: Shared | None, at: Mapping[str, int]) -> list[Any]:
    if shared is None:
        return [0, []]
    return [shared.bytes, [[at[name], each] for name, each in shared.per]]
