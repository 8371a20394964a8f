"""Memory for everything a manifest names, and the functions its launches run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bedstone.errors import CallerError, KernelError, ManifestError
from bedstone.runtime.device import Device, Memory
from bedstone.runtime.image import Linker
from bedstone.runtime.lower import Kernel, Pointer, Region
from bedstone.runtime.memory import (
    Capacity,
    array_bytes,
    plan_arena,
    state_bytes,
    upper_bounds,
)
from bedstone.runtime.modules import Artifact
from bedstone.spec.manifest import BufferKind, KernelLaunch, Launch, Manifest, Op, TensorMap
from bedstone.verify.binding import launch_params

_ARENA_KINDS: tuple[BufferKind, ...] = ("input", "output", "inout", "workspace", "carry")


@dataclass(frozen=True, slots=True)
class Regions:
    """Where each region lies, by what the manifest calls it."""

    device: Device
    functions: Mapping[Kernel, int]
    memory: dict[Region, Memory] = field(default_factory=dict)

    def linker(self) -> Linker:
        """What a lowered program needs to become an image."""
        return Linker(self._address, self.functions.__getitem__, self._tensor_map)

    def _address(self, pointer: Pointer) -> int:
        memory = self.memory[pointer.region]
        if pointer.offset and pointer.offset >= memory.nbytes:
            raise ManifestError(
                f"{pointer.region} is used from byte {pointer.offset} on: it has {memory.nbytes} "
                "bytes as loaded"
            )
        return memory.address + pointer.offset

    def _tensor_map(self, tensor: TensorMap, over: Pointer) -> bytes:
        room = self.memory[over.region].nbytes - over.offset
        return self.device.tensor_map(tensor, self._address(over), room)


def resolve_functions(
    manifest: Manifest, artifacts: Mapping[str, Artifact], device: Device
) -> dict[Kernel, int]:
    """The device's handle of every kernel that a launch runs, each held against its parameters.

    Raises `KernelError`: a module lacks an entry or an ABI differs; the message says where it is
    used.
    """
    functions: dict[Kernel, int] = {}
    for site, op, launch in _launches(manifest):
        module = launch.module if isinstance(launch, KernelLaunch) else None
        kernel = Kernel(module, launch.entry, launch_params(op, launch))
        if kernel not in functions:
            try:
                functions[kernel] = _function(kernel, artifacts, device)
            except KernelError as error:
                raise KernelError(f"{site}: {error}") from error
    return functions


def allocate_regions(manifest: Manifest, device: Device) -> dict[Region, Memory]:
    """Buffers that start as zeros, and each op's scratch, at the maxima of their vars."""
    upper = upper_bounds(manifest)
    sizes = {
        Region("buffer", name): array_bytes(buffer.dtype, buffer.shape, upper)
        for name, buffer in sorted(manifest.buffers.items())
        if buffer.kind in _ARENA_KINDS
    } | {
        Region("scratch", op, part): array_bytes(scratch.dtype, scratch.shape, upper)
        for op, body in sorted(manifest.ops.items())
        for part, scratch in sorted(body.impl.scratch.items())
    }
    offsets, total = plan_arena(sizes)
    arena = device.allocate(total)
    return {
        region: Memory(arena.address + offset, sizes[region], arena)
        for region, offset in offsets.items()
    }


def allocate_states(manifest: Manifest, capacity: Capacity, device: Device) -> dict[Region, Memory]:
    """The states, as large as `capacity` says."""
    return {
        Region("state", name): device.allocate(state_bytes(state, capacity))
        for name, state in sorted(manifest.states.items())
    }


def require_one_process(manifest: Manifest) -> None:
    """Refuse what needs memory from outside: another engine's states, another rank's buffers.

    Raises `CallerError`: the manifest declares such.
    """
    for name, state in manifest.states.items():
        if state.host is not None:
            raise CallerError(f"state `{name}` belongs to an outer engine, and none gave it memory")
    for name, buffer in manifest.buffers.items():
        if buffer.kind == "peer":
            raise CallerError(
                f"buffer `{name}` holds other ranks' addresses, and none is connected"
            )


def _launches(manifest: Manifest) -> Iterator[tuple[str, Op, Launch]]:
    for name, op in sorted(manifest.ops.items()):
        for index, launch in enumerate(op.impl.launches):
            yield f"op `{name}` launch #{index}", op, launch


def _function(kernel: Kernel, artifacts: Mapping[str, Artifact], device: Device) -> int:
    if kernel.module is None:
        return device.builtin(kernel.entry, kernel.params)
    return device.function(artifacts[kernel.module], kernel.entry, kernel.params)
