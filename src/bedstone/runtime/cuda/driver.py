"""What the device asks of the CUDA driver: every call it makes, in plain numbers.

Handles and addresses are integers, sizes are bytes. Nothing here knows `cuda-bindings`:
`bedstone.runtime.cuda.bindings` implements it over them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bedstone.errors import DeviceError
from bedstone.runtime.device import RowCopy

Launch = Callable[[int, int, int, None], int]
"""Of a launch configuration, a function and its parameters, all by address; the status."""


class CudaError(DeviceError):
    """A driver call failed; `code` is the driver's name for it."""

    def __init__(self, call: str, code: str) -> None:
        super().__init__(f"the CUDA driver answered `{code}` to `{call}`")
        self.code = code


OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
NOT_FOUND = "CUDA_ERROR_NOT_FOUND"
NOT_READY = "CUDA_ERROR_NOT_READY"
FOREIGN_CODE = frozenset(
    {
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "CUDA_ERROR_INVALID_IMAGE",
        "CUDA_ERROR_INVALID_PTX",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "CUDA_ERROR_INVALID_SOURCE",
    }
)
"""What the driver answers to code that is not for this device, or is no code."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a GPU is. `version` is the newest CUDA its driver speaks, as (major, minor).

    `node` is the node of the host's memory that is nearest to it, -1 where there is but one.
    """

    name: str
    capability: tuple[int, int]
    version: tuple[int, int]
    tensor_maps: bool
    node: int = -1


@dataclass(frozen=True, slots=True)
class TiledMap:
    """The arguments of a tiled tensor map, innermost dimension first.

    `dtype`, `swizzle` and `promotion` are the driver's numbers, `strides` bytes.
    """

    dtype: int
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    promotion: int
    oob_nan: bool


class Driver(Protocol):
    """One GPU's primary context. A call that fails raises `CudaError`."""

    @property
    def facts(self) -> Facts:
        """What the GPU is."""

    @property
    def launch(self) -> Launch:
        """Enqueues a kernel; called once a launch, so as thin as it can be."""

    def enter(self) -> None:
        """Make the context current for the calling thread."""

    def close(self) -> None:
        """Let go of the context."""

    # --- memory ---

    def free_bytes(self) -> int:
        """Device memory that is free."""

    def alloc(self, nbytes: int) -> int:
        """Device memory, as it was left."""

    def free(self, address: int) -> None:
        """Give `alloc`'s memory back."""

    def alloc_host(self, nbytes: int) -> int:
        """Page-locked host memory that the device reaches under the same address."""

    def free_host(self, address: int) -> None:
        """Give `alloc_host`'s memory back."""

    def granule(self) -> int:
        """Bytes that physical memory is made in multiples of."""

    def reserve(self, nbytes: int) -> int:
        """A range of addresses with nothing behind it."""

    def unreserve(self, address: int, nbytes: int) -> None:
        """Give a range of addresses back."""

    def create(self, nbytes: int) -> int:
        """Physical memory without an address."""

    def discard(self, chunk: int) -> None:
        """Give physical memory back."""

    def map(self, address: int, nbytes: int, chunk: int) -> None:
        """Put physical memory behind addresses."""

    def unmap(self, address: int, nbytes: int) -> None:
        """Take it away again."""

    def allow(self, address: int, nbytes: int) -> None:
        """Let the device read and write a mapped range."""

    # --- work, in the order of a stream ---

    def zero(self, address: int, nbytes: int, stream: int) -> None:
        """Set device memory to zero."""

    def copy_in(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from the host."""

    def copy_rows(self, rows: RowCopy, stream: int) -> None:
        """Copy rows between device memory and page-locked memory of the host, either way."""

    def copy_out(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy to the host."""

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy device memory, or page-locked memory of the host."""

    def stream(self) -> int:
        """A stream that does not wait for the legacy one."""

    def end_stream(self, stream: int) -> None:
        """Let go of a stream."""

    def sync(self, stream: int) -> None:
        """Return once everything enqueued in a stream is over."""

    def event(self) -> int:
        """A mark to put into streams."""

    def end_event(self, event: int) -> None:
        """Let go of a mark."""

    def record(self, event: int, stream: int) -> None:
        """Put a mark behind what a stream has so far."""

    def follow(self, stream: int, event: int) -> None:
        """What is put into a stream from now on waits for a mark, as it was last put anywhere."""

    def passed(self, event: int) -> bool:
        """Whether a stream has come to a mark."""

    def wait(self, event: int) -> None:
        """Return once a stream has come to a mark; the thread sleeps or spins, others run."""

    # --- code ---

    def load(self, image: bytes) -> int:
        """A module from a cubin, a fat binary or PTX text."""

    def unload(self, module: int) -> None:
        """Let go of a module."""

    def function(self, module: int, name: str) -> int | None:
        """A module's function of that name, loaded; None if it has none."""

    def param_sizes(self, function: int) -> tuple[int, ...]:
        """Bytes of each parameter a function was compiled for."""

    def most_threads(self, function: int) -> int:
        """The most threads a block of it may have."""

    def has(self, module: int, name: str) -> bool:
        """Whether a module has a variable of that name."""

    def blocks_at_once(self, function: int, threads: int, shared: int) -> int:
        """How many blocks of it the device holds, of so many threads and bytes they share."""

    def allow_shared(self, function: int, nbytes: int) -> None:
        """Raise what its blocks may share, beyond what is declared in its source."""

    def prefer_shared(self, function: int) -> None:
        """Run it on multiprocessors that hold as much shared memory as they can."""

    def allow_large_clusters(self, function: int) -> None:
        """Let it run in clusters of more than eight blocks."""

    def encode(self, tiled: TiledMap) -> bytes:
        """The 128 bytes of a tensor map."""

    # --- graphs ---

    def begin(self, stream: int) -> None:
        """Record what this thread enqueues in a stream instead of running it."""

    def end(self, stream: int) -> int:
        """End the recording; the graph."""

    def drop_graph(self, graph: int) -> None:
        """Let go of a recording that will not be used."""

    def instantiate(self, graph: int, stream: int) -> int:
        """A graph ready to be launched, and in place on the device; the graph is used up."""

    def end_graph(self, executable: int) -> None:
        """Let go of it."""

    def launch_graph(self, executable: int, stream: int) -> None:
        """Run everything a graph recorded."""
