"""How a kernel of a library is called: what its Solution's `call.json` says.

Such a Solution is called as the runtime calls a kernel: with a word for each parameter, once for
each block of a grid.

    types       the parameters' types, separated by `, `, as a manifest writes them
    tensors     names of the call's arguments, inputs and then outputs, in order
    parameters  for each: {"tensor": name}, {"i32": number}, {"f32": number}, {"i32": [name, axis]}
                for a size of one of them, or {"maps": [[name, rows, width, height], ...]}: tensor
                maps of bf16 matrices, by the parameter that holds their rows (null: all there are)
                and those that their values a row are the product of
                {"parts": [[[parameter, ...], per, more], ...]} is memory of the call's own, f32
                values that one launch leaves for the next: each extent is `more` beside the product
                of parameters, over `per`; {"parts": null} is that of the launch before
    grid        for each extent a number, or [parameter, per, times]: `times` blocks for each `per`
    shared      bytes of scratch, and [parameter, bytes] for what each of its values adds
    then        further launches of the module, on a CPU: `entry` and all but `tensors` of the above

On a GPU these are said too:

    arch        what it is compiled for, such as `sm_90a`
    block       threads
    cluster     blocks that share memory, or null
    overlaps    whether it waits by itself for the launch before it
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch

from bedstone.prove.results import ResultError
from bedstone.prove.write import CALL


@dataclass(frozen=True, slots=True)
class OnGpu:
    """What only a GPU is told. `overlaps` is not: a launch that is timed alone overlaps nothing."""

    arch: str
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Calling:
    """What `call.json` says; `gpu` is None of a kernel in C, `then` the launches behind it."""

    types: tuple[str, ...]
    tensors: tuple[str, ...]
    parameters: tuple[Mapping[str, Any], ...]
    grid: tuple[Any, ...]
    shared: tuple[int, tuple[tuple[int, int], ...]]
    gpu: OnGpu | None = None
    then: tuple[tuple[str, "Calling"], ...] = ()

    def values(self, given: Mapping[str, torch.Tensor]) -> list[tuple[str, Any]]:
        """Each parameter's kind and, of a tensor or maps their names, of a number its value."""
        return [_value(parameter, given) for parameter in self.parameters]

    def extents(self, numbers: Sequence[Any]) -> tuple[int, int, int]:
        """The grid, where parameters have these values."""
        x, y, z = (_extent(extent, numbers) for extent in self.grid)
        return x, y, z

    def parts(self, numbers: Sequence[Any]) -> int | None:
        """How many values it leaves for the next launch; None where it leaves none."""
        found = next((p["parts"] for p in self.parameters if p.get("parts")), None)
        return None if found is None else count_values(found, numbers)

    def scratch(self, numbers: Sequence[Any]) -> int:
        """Bytes of scratch of a block."""
        least, per = self.shared
        return least + sum(int(numbers[at]) * each for at, each in per)


def read_calling(path: Path) -> Calling:
    """What a `call.json` says; a `ResultError` where it is none."""
    try:
        value = json.loads(path.read_bytes())
        calling = _calling(value, tuple(value["tensors"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        message = f"a kernel says how it is called in `{CALL}`: {error!r}"
        raise ResultError("COMPILE_ERROR", message) from error
    for each in (calling, *(launch for _, launch in calling.then)):
        if len(each.types) != len(each.parameters) or len(each.grid) != len("xyz"):
            message = f"`{CALL}` has a type for each parameter and three extents of a grid"
            raise ResultError("COMPILE_ERROR", message)
    return calling


def _calling(value: Mapping[str, Any], tensors: tuple[str, ...]) -> Calling:
    shared = value["shared"]
    return Calling(
        tuple(value["types"].split(", ")),
        tensors,
        tuple(value["parameters"]),
        tuple(value["grid"]),
        (int(shared[0]), tuple((int(at), int(each)) for at, each in shared[1])),
        _on_gpu(value) if "block" in value else None,
        tuple((str(each["entry"]), _calling(each, tensors)) for each in value.get("then", ())),
    )


def count_values(parts: Sequence[Any], numbers: Sequence[Any]) -> int:
    """How many values memory of such extents holds."""
    return prod(_dim(dim, numbers) for dim in parts)


def _on_gpu(value: Mapping[str, Any]) -> OnGpu:
    x, y, z = map(int, value["block"])
    if value["cluster"] is None:
        return OnGpu(str(value["arch"]), (x, y, z), None)
    a, b, c = map(int, value["cluster"])
    return OnGpu(str(value["arch"]), (x, y, z), (a, b, c))


def _value(parameter: Mapping[str, Any], given: Mapping[str, torch.Tensor]) -> tuple[str, Any]:
    ((kind, value),) = parameter.items()
    if kind in ("tensor", "maps", "parts") or not isinstance(value, list):
        return kind, value
    name, axis = value
    return kind, given[name].shape[axis]


def _extent(extent: Any, numbers: Sequence[Any]) -> int:  # noqa: ANN401  (a JSON value)
    if isinstance(extent, int):
        return extent
    at, per, times = extent
    return int(times * -(-numbers[at] // per))


def _dim(dim: Any, numbers: Sequence[Any]) -> int:  # noqa: ANN401  (a JSON value)
    product, per, more = prod(numbers[at] for at in dim[0]), dim[1], dim[2]
    return int(-(-product // per) + more)
