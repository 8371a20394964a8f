"""Memory for everything a manifest names, and the functions its launches run."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import field
from msgspec.structs import replace

from bedstone.errors import CallerError, KernelError, ManifestError
from bedstone.runtime.builtin import builtin_uses
from bedstone.runtime.device import Device, Memory
from bedstone.runtime.image import Linker, largest_grids, largest_shared
from bedstone.runtime.lower import Kernel, LoweredProgram, Pointer, Region, kernel_of
from bedstone.runtime.memory import (
    Capacity,
    array_bytes,
    plan_arena,
    plan_chunk,
    plan_exchange,
    state_needs,
    upper_bounds,
)
from bedstone.runtime.modules import Artifact
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import BufferKind, Launch, Manifest, Op, TensorMap

_ARENA_KINDS: tuple[BufferKind, ...] = ("output", "inout", "workspace", "carry")


class Regions(Frozen):
    """Where each region lies, by what the manifest calls it."""

    device: Device
    functions: Mapping[Kernel, int]
    memory: dict[Region, Memory] = field(default_factory=dict)

    def linker(self) -> Linker:
        """What a lowered program needs to become an image."""
        return Linker(self._address, self.functions.__getitem__, self._tensor_map)

    def room(self, pointer: Pointer) -> int:
        """Bytes from a pointer to the end of its region."""
        return self.memory[pointer.region].nbytes - pointer.offset

    def _address(self, pointer: Pointer) -> int:
        memory = self.memory[pointer.region]
        if pointer.offset and pointer.offset >= memory.nbytes:
            raise ManifestError(
                f"{pointer.region} is used from byte {pointer.offset} on: it has {memory.nbytes} "
                "bytes as loaded"
            )
        return memory.address + pointer.offset

    def _tensor_map(self, tensor: TensorMap, over: Pointer) -> bytes:
        memory = self.memory[over.region]
        room = max(memory.nbytes, memory.reserved) - over.offset
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
        kernel = kernel_of(op, launch)
        if kernel not in functions:
            try:
                functions[kernel] = _function(kernel, artifacts, device)
            except KernelError as error:
                raise KernelError(f"{site}: {error}") from error
    return functions


def allocate_regions(manifest: Manifest, device: Device) -> dict[Region, Memory]:
    """Buffers that start as zeros, and each op's scratch, at the maxima of their vars.

    Inputs lie together, the smallest first: what changes with every call is one run of bytes.
    """
    inputs = _buffer_sizes(manifest, ("input",))
    upper = upper_bounds(manifest)
    others = _buffer_sizes(manifest, _ARENA_KINDS) | {
        Region("scratch", op, part): array_bytes(scratch.dtype, scratch.shape, upper)
        for op, body in sorted(manifest.ops.items())
        for part, scratch in sorted(body.impl.scratch.items())
    }
    by_size = dict(sorted(inputs.items(), key=lambda entry: entry[1]))
    return carve(by_size, device.allocate_inputs) | carve(others, device.allocate)


def carve(sizes: Mapping[Region, int], allocate: Callable[[int], Memory]) -> dict[Region, Memory]:
    """One allocation with a place in it for each region of a size in bytes."""
    offsets, total = plan_arena(sizes)
    arena = allocate(total)
    return {
        region: Memory(arena.address + offset, sizes[region], arena)
        for region, offset in offsets.items()
    }


def allocate_states(manifest: Manifest, capacity: Capacity, device: Device) -> dict[Region, Memory]:
    """The states, as large as `capacity` says."""
    needs = state_needs(manifest, capacity)
    exchange = capacity.exchange
    chunk = exchange.chunk if exchange else plan_chunk(needs.values(), device.granule)
    memory = device.allocate_states(tuple(needs.values()), chunk)
    return {Region("state", name): held for name, held in zip(needs, memory, strict=True)}


def with_exchange(manifest: Manifest, capacity: Capacity, device: Device) -> Capacity:
    """The capacity, with memory that goes between paged and per-sequence states, if it has both."""
    needs = state_needs(manifest, capacity)
    exchange = plan_exchange(manifest, capacity, device.chunk(tuple(needs.values())))
    return replace(capacity, exchange=exchange)


def kept_exchange(capacity: Capacity, states: Mapping[Region, Memory]) -> Capacity:
    """The capacity as it is where the device reserved no addresses to remap to."""
    reserved = any(memory.reserved for memory in states.values())
    return capacity if reserved else replace(capacity, exchange=None)


def make_ready(manifest: Manifest, programs: Sequence[LoweredProgram], regions: Regions) -> None:
    """Prepare the device for every launch of the programs at any vars.

    Raises `ManifestError`: a launch's shared memory or grid has no value at the maxima.
    Raises `TargetError`: the device does not hold at once what has to run at once.
    Raises `KernelError`: a built-in's operands do not fit it.
    """
    upper, functions = upper_bounds(manifest), regions.functions
    shared, blocks = largest_shared(programs, upper), largest_grids(programs, upper)
    regions.device.reserve_shared({functions[kernel]: most for kernel, most in shared.items()})
    regions.device.admit_blocks({functions[kernel]: most for kernel, most in blocks.items()})
    for program in programs:
        for kernel, use in builtin_uses(program, manifest, regions.room):
            regions.device.admit(functions[kernel], use)


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


def _buffer_sizes(manifest: Manifest, kinds: tuple[BufferKind, ...]) -> dict[Region, int]:
    upper = upper_bounds(manifest)
    return {
        Region("buffer", name): array_bytes(buffer.dtype, buffer.shape, upper)
        for name, buffer in sorted(manifest.buffers.items())
        if buffer.kind in kinds
    }


def _launches(manifest: Manifest) -> Iterator[tuple[str, Op, Launch]]:
    for name, op in sorted(manifest.ops.items()):
        for index, launch in enumerate(op.impl.launches):
            yield f"op `{name}` launch #{index}", op, launch


def _function(kernel: Kernel, artifacts: Mapping[str, Artifact], device: Device) -> int:
    if kernel.module is None:
        return device.builtin(kernel)
    return device.function(artifacts[kernel.module], kernel)
