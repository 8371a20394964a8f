"""Kernels in CUDA, compiled by NVRTC and launched on PyTorch's stream as `call.json` says.

Programmatic launches are not asked for: a kernel that is timed alone has nobody to overlap with.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Protocol

import torch

from bedstone.errors import BedstoneError
from bedstone.prove.results import ResultError
from bedstone.prove.sandbox.calling import Calling, OnGpu, count_values, read_calling
from bedstone.prove.write import CALL
from bedstone.spec.manifest import BytesParam, ParamType
from bedstone.spec.param import param_bytes, parse_param
from bedstone.target.architecture import Capability, unfit
from bedstone.target.nvrtc import compile_cubins, find_nvrtc
from bedstone.target.toolchain import Unit

_PACKED = {"i32": "<i", "f32": "<f"}
_PORTABLE_CLUSTER = 8


@dataclass(frozen=True, slots=True)
class Matrix:
    """A bf16 matrix on the device that is read by boxes of `height` rows."""

    address: int
    rows: int
    k: int
    height: int


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: extents, bytes of dynamic shared memory, and each parameter's own bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    shared: int
    parameters: tuple[bytes, ...]


class Driver(Protocol):
    """What is asked of the GPU's driver; a call that fails is a `ResultError`."""

    @property
    def capability(self) -> Capability:
        """The device's compute capability."""

    def function(self, image: bytes, name: str) -> int | None:
        """The function of that name in a module; None if it has none."""

    def parameter_sizes(self, function: int) -> tuple[int, ...]:
        """Bytes of each parameter it was compiled for."""

    def allow(self, function: int, shared: int, *, large_clusters: bool) -> None:
        """Let its blocks share so many bytes, and clusters be larger than every GPU takes."""

    def tensor_map(self, matrix: Matrix) -> bytes:
        """The 128 bytes that tell the copy engine of a matrix."""

    def ready(self, function: int, launch: Launch) -> Callable[[], None]:
        """What enqueues the launch on PyTorch's stream, everything else about it being done."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as its module has it, and as `call.json` says it is called."""

    function: int
    calling: Calling
    on: OnGpu
    types: tuple[ParamType, ...]
    driver: Driver

    def bind(self, *tensors: torch.Tensor) -> Callable[[], None]:
        """The launch with these tensors, laid out; what is taken by value is read from them now."""
        given = dict(zip(self.calling.tensors, tensors, strict=True))
        values = self.calling.values(given)
        numbers = [value for _, value in values]
        grid = self.calling.extents(numbers)
        if not all(grid):
            return _nothing
        own = [_own_memory(value, numbers, tensors[0].device) for value in values]
        packed = tuple(
            self._packed(each, type_, given, numbers)
            for each, type_ in zip(own, self.types, strict=True)
        )
        shared = self.calling.scratch(numbers)
        a, b, c = self.on.cluster or (1, 1, 1)
        self.driver.allow(self.function, shared, large_clusters=a * b * c > _PORTABLE_CLUSTER)
        launch = Launch(grid, self.on.block, self.on.cluster, shared, packed)
        return _holding(own, self.driver.ready(self.function, launch))

    def _packed(
        self,
        value: tuple[str, Any],
        type_: ParamType,
        given: Mapping[str, torch.Tensor],
        numbers: list[Any],
    ) -> bytes:
        """A parameter's bytes."""
        match value, type_:
            case ("tensor", name), BytesParam(size):
                return _bytes_of(given[name], size)
            case ("tensor", name), _:
                return struct.pack("<Q", given[name].data_ptr())
            case ("maps", boxes), _:
                return b"".join(
                    self.driver.tensor_map(_matrix(given[each[0]], numbers, *each[1:]))
                    for each in boxes
                )
            case ("parts", memory), _:
                return struct.pack("<Q", memory.data_ptr())
            case (kind, number), _:
                return struct.pack(_PACKED[kind], number)


def _own_memory(
    value: tuple[str, Any], numbers: Sequence[Any], device: torch.device
) -> tuple[str, Any]:
    """The parameter's kind and value, memory of the call's own being made."""
    kind, extents = value
    if kind != "parts":
        return value
    return kind, torch.full((count_values(extents, numbers),), torch.nan, device=device)


def _holding(memory: object, run: Callable[[], None]) -> Callable[[], None]:
    """The launch, with memory that is let go of when it is."""

    def held(_memory: object = memory) -> None:
        run()

    return held


def _nothing() -> None:
    """An empty grid."""


def _bytes_of(tensor: torch.Tensor, size: int) -> bytes:
    """The bytes of a tensor that is passed by value."""
    held = bytes(tensor.cpu().contiguous().view(torch.uint8).flatten().tolist())
    if len(held) != size:
        message = f"a tensor of {len(held)} bytes, passed by value as {size}"
        raise ResultError("RUNTIME_ERROR", message)
    return held


def load_cuda(
    folder: Path, file: str, name: str, spec: Mapping[str, Any], driver: Driver
) -> Callable[..., Callable[[], None]]:
    """Compile a CUDA Solution, unless its cubin is kept already, and find its entry.

    Args:
        folder: Its files.
        file: The one to compile; it includes others of the folder.
        name: The entry.
        spec: NVRTC's flags, and the `cache` that cubins are kept in.
        driver: The GPU's.

    Returns:
        A function of the inputs and outputs in order that lays out a launch and returns it.

    Raises:
        ResultError: it does not compile, is not for this GPU, or takes other parameters than
            `call.json` states.
    """
    calling = read_calling(folder / CALL)
    on, types = calling.gpu, _types(calling)
    if on is None:
        raise ResultError("COMPILE_ERROR", f"`{CALL}` does not say what a GPU's launch needs")
    refusal = unfit(on.arch, "cubin", driver.capability)
    if refusal is not None:
        raise ResultError("COMPILE_ERROR", f"`{name}`: {refusal}")
    image = _compiled(folder / file, on.arch, spec)
    function = driver.function(image, name)
    if function is None:
        raise ResultError("COMPILE_ERROR", f"the module has no function `{name}`")
    _require_parameters(name, types, driver.parameter_sizes(function))
    return Kernel(function, calling, on, types, driver).bind


def cuda_unit(source: Path, options: Mapping[str, Sequence[str]]) -> Unit:
    """What a Solution's module is compiled from: its source, with the headers beside it."""
    return Unit((source,), tuple(options.get("cuda_cflags", ())), {}, (source.parent,))


def _compiled(source: Path, arch: str, spec: Mapping[str, Any]) -> bytes:
    unit = cuda_unit(source, spec["options"])
    try:
        (path,) = compile_cubins([unit], arch, cache=Path(spec["cache"]), nvrtc=find_nvrtc())
        return path.read_bytes()
    except BedstoneError as error:
        raise ResultError("COMPILE_ERROR", str(error)) from error


def _types(calling: Calling) -> tuple[ParamType, ...]:
    try:
        return tuple(map(parse_param, calling.types))
    except ValueError as error:
        raise ResultError("COMPILE_ERROR", f"`types` of `{CALL}`: {error}") from error


def _require_parameters(name: str, types: tuple[ParamType, ...], found: tuple[int, ...]) -> None:
    """The driver knows of parameters how many bytes they are, and no more."""
    said = tuple(map(param_bytes, types))
    if said != found:
        message = f"`{name}` takes parameters of {list(found)} bytes, `{CALL}` says {list(said)}"
        raise ResultError("COMPILE_ERROR", message)


def _matrix(
    tensor: torch.Tensor, numbers: list[Any], at: int | None, width: list[int], height: int
) -> Matrix:
    """Rows as many as a number says, or as there are, of as many values as others multiply to."""
    held = tensor.numel() * tensor.element_size()
    k = prod(numbers[each] for each in width)
    rows = held // (2 * k) if at is None and k > 0 else numbers[at or 0]
    if not 0 < 2 * rows * k <= held:
        message = f"a tensor map of {rows} rows of {k} values, over {held} bytes"
        raise ResultError("RUNTIME_ERROR", message)
    return Matrix(tensor.data_ptr(), rows, k, height)
