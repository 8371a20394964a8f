"""One GPU as a device of the runtime."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CapacityError, KernelError
from bedstone.runtime.cuda.cublas import WORKSPACE_BYTES, Blas
from bedstone.runtime.cuda.driver import OUT_OF_MEMORY, CudaError, Driver
from bedstone.runtime.cuda.externs import product_of, reachable_sizes, require_room
from bedstone.runtime.cuda.launches import Target, attributes_of
from bedstone.runtime.cuda.modules import Modules
from bedstone.runtime.cuda.remap import Remap
from bedstone.runtime.cuda.staging import Staged, Staging, Unstaged
from bedstone.runtime.cuda.states import States, plan_arenas
from bedstone.runtime.cuda.steps import Steps
from bedstone.runtime.cuda.tensormap import tiled_map
from bedstone.runtime.cuda.transfer import Transfer, Transfers
from bedstone.runtime.cuda.upload import Uploader
from bedstone.runtime.device import (
    BuiltinUse,
    Finished,
    Memory,
    Opened,
    Pending,
    RowCopy,
    StateNeed,
    Tap,
    Upload,
)
from bedstone.runtime.image import Capture
from bedstone.runtime.lower import Kernel
from bedstone.runtime.memory import plan_chunk
from bedstone.runtime.modules import Artifact
from bedstone.spec.manifest import TensorMap

_AHEAD = 4


class CudaDevice:
    """A GPU: one stream that computes, memory and code of its own until it is closed."""

    name = "cuda"
    ahead = _AHEAD

    def __init__(
        self,
        driver: Driver,
        blas: Callable[[int, int], Blas] = Blas,
    ) -> None:
        self._driver = driver
        self._make_blas = blas
        self._held = contextlib.ExitStack()
        self._held.callback(driver.close)
        self.granule = driver.granule()
        self._stream = driver.stream()
        self._on_close(driver.end_stream, self._stream)
        self._memory: dict[int, Callable[[int], None]] = {}
        self._on_close(self._free_all)
        self._states = States(driver)
        self._on_close(self._states.close)
        self._remap: Remap | None = None
        self._transfers = Transfers(driver, self._stream)
        self._on_close(self._transfers.close)
        self._modules = Modules(driver)
        self._on_close(self._modules.close)
        self._targets: list[Target] = []
        self._shared: dict[int, int] = {}
        self._staging: list[Staging] = []
        self._blas: Blas | None = None
        self._steps = Steps(driver, self._stream, self._targets)
        self._on_close(self._steps.close)

    # --- memory ---

    def free_bytes(self) -> int:
        """Device memory that is free."""
        self._driver.enter()
        return self._driver.free_bytes()

    def allocate(self, nbytes: int) -> Memory:
        """Device memory, zero-filled."""
        return self._allocated(nbytes, self._driver.alloc, self._driver.free)

    def allocate_inputs(self, nbytes: int) -> Memory:
        """Device memory that is written through page-locked blocks, together before a replay."""
        memory = self.allocate(nbytes)
        if nbytes:
            staging = Staging(self._driver, memory.address, nbytes)
            self._staging.append(staging)
            self._on_close(staging.close)
        return memory

    def allocate_host(self, nbytes: int) -> Memory:
        """Page-locked memory that kernels read over the bus."""
        return self._allocated(nbytes, self._driver.alloc_host, self._driver.free_host)

    def allocate_states(self, needs: Sequence[StateNeed], chunk: int) -> tuple[Memory, ...]:
        """Addresses that stay, with chunks of memory behind them."""
        self._driver.enter()
        return self._states.allocate(plan_arenas(needs, chunk, self.granule), self._stream)

    def chunk(self, needs: Sequence[StateNeed]) -> int:
        """That in which states are mapped."""
        return plan_chunk(needs, self.granule)

    def remap(self, moves: Sequence[tuple[int, int]], chunk: int) -> Remap:
        """Unmap chunks and map them elsewhere, in a thread of its own."""
        self._driver.enter()
        self._remap = Remap(self._driver, self._states, moves, chunk, self._stream)
        return self._remap

    def transfer(self, copies: Sequence[RowCopy]) -> Transfer:
        """Enqueue copies in a stream of their own."""
        self._driver.enter()
        return self._transfers.start(copies)

    def release(self, memory: Memory) -> None:
        """Free memory, after everything that may use it."""
        free = self._memory.pop(memory.address, None)
        if free is not None:
            self._synchronized()
            free(memory.address)

    def adopt(self, _data: NDArray[np.uint8]) -> Memory | None:
        """A file's pages are not the device's."""
        return None

    # --- bytes ---

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy host bytes [n]: to an input before the next replay, to anything else at once."""
        staging = self._staged(address)
        if staging is not None:
            staging.write(address, data)
            return
        self._synchronized()
        self._driver.copy_in(address, data.ctypes.data, data.size, self._stream)
        self._driver.sync(self._stream)

    def open(self, memory: Memory) -> Opened:
        """What remembers parts of an input until the next replay, or writes them at once."""
        staging = self._staged(memory.address)
        if staging is not None:
            return Staged(staging, memory.address)
        return Unstaged(self.write, memory.address)

    def upload(self, uploads: Sequence[Upload], done: Callable[[int], None]) -> Finished:
        """Read files with many threads, and copy as they read; all is there on return."""
        self._synchronized()
        Uploader(self._driver).run(uploads, done)
        return Finished()

    def read(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """A copy of device memory, after everything enqueued."""
        self._flush()
        data = np.empty(nbytes, np.uint8)
        self._driver.copy_out(data.ctypes.data, address, nbytes, self._stream)
        self._driver.sync(self._stream)
        return data

    def clear(self, address: int, nbytes: int) -> None:
        """Set device memory to zero, in the order of the stream."""
        staging = self._staged(address)
        if staging is not None:
            staging.clear(address, nbytes)
        elif nbytes:
            self._driver.enter()
            self._driver.zero(address, nbytes, self._stream)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy device memory, in the order of the stream."""
        if nbytes:
            self._driver.enter()
            self._driver.copy(target, source, nbytes, self._stream)

    # --- code ---

    def misfits(self, artifacts: Iterable[Artifact]) -> Iterator[str]:
        """Modules without code for this GPU or its driver."""
        return (why for each in artifacts if (why := self._modules.misfit(each)) is not None)

    def function(self, artifact: Artifact, kernel: Kernel) -> int:
        """A handle of the module's function with the geometry of its launches."""
        self._driver.enter()
        function = self._modules.function(artifact, kernel)
        self._targets.append(Target(kernel, function, None, attributes_of(kernel)))
        return len(self._targets) - 1

    def builtin(self, kernel: Kernel) -> int:
        """A handle of one of the matrix products."""
        product = product_of(kernel)
        enqueue = self._open_blas().enqueuer(product, kernel.algo)
        self._targets.append(Target(kernel, builtin=enqueue))
        return len(self._targets) - 1

    def admit(self, handle: int, use: BuiltinUse) -> None:
        """Accept a product whose operands hold it and whose algorithm runs at all its sizes."""
        kernel = self._targets[handle].kernel
        product = product_of(kernel)
        require_room(product, use)
        if kernel.algo is not None:
            sizes = reachable_sizes(product, use)
            self._open_blas().check(product, kernel.algo, sizes, use.site)

    def tensor_map(self, tensor: TensorMap, address: int, nbytes: int) -> bytes:
        """A descriptor for the tensor memory accelerator.

        Raises `KernelError`: the GPU has none, or the driver refuses the tensor.
        """
        facts = self._driver.facts
        if not facts.tensor_maps:
            raise KernelError(f"a kernel takes a tensor map, and GPU `{facts.name}` has none")
        tiled = tiled_map(tensor, address, nbytes)
        try:
            return self._driver.encode(tiled)
        except CudaError as error:
            raise KernelError(f"{tensor} over {nbytes} bytes at {address:#x}: {error}") from error

    def admit_blocks(self, blocks: Mapping[int, int]) -> None:
        """Refuse what would wait for blocks that cannot run."""
        for handle, most in blocks.items():
            target = self._targets[handle]
            if target.builtin is None:
                shared = self._shared.get(handle, 0)
                self._modules.require_together(target.function, target.kernel, most, shared)

    def reserve_shared(self, nbytes: Mapping[int, int]) -> None:
        """Set the limit of functions whose blocks share memory beside their own.

        Without one the two together may be 48 KB.

        Raises `KernelError`: one would share more than the GPU has.
        """
        self._shared |= nbytes
        for handle, most in nbytes.items():
            target = self._targets[handle]
            if not most:
                continue
            try:
                self._driver.allow_shared(target.function, most)
            except CudaError as error:
                raise KernelError(
                    f"kernel `{target.kernel.entry}` shares {most} bytes a block beside its own, "
                    f"more than GPU `{self._driver.facts.name}` allows: {error}"
                ) from error

    # --- replays ---

    def replay(self, capture: Capture, repeat: int, taps: Sequence[Tap]) -> Pending:
        """Copy what was written, then enqueue the steps."""
        self._flush()
        return self._steps.replay(capture, repeat, taps)

    def close(self) -> None:
        """Wait for the device, then let go of everything."""
        if self._remap is not None:
            self._remap.close()
        with contextlib.suppress(CudaError):  # after a fault every call answers with it
            self._synchronized()
        self._held.close()

    # --- how ---

    def _allocated(
        self, nbytes: int, alloc: Callable[[int], int], free: Callable[[int], None]
    ) -> Memory:
        if not nbytes:
            return Memory(0, 0, None)
        self._driver.enter()
        try:
            address = alloc(nbytes)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            raise CapacityError(
                f"{nbytes} bytes are not to be had: {self._driver.free_bytes()} bytes of device "
                "memory are left"
            ) from error
        self._memory[address] = free
        self._driver.zero(address, nbytes, self._stream)
        return Memory(address, nbytes, self)

    def _open_blas(self) -> Blas:
        if self._blas is None:
            workspace = self.allocate(WORKSPACE_BYTES)
            self._blas = self._make_blas(self._stream, workspace.address)
            self._on_close(self._blas.close)
        return self._blas

    def _staged(self, address: int) -> Staging | None:
        return next((staging for staging in self._staging if staging.holds(address)), None)

    def _flush(self) -> None:
        self._driver.enter()
        for staging in self._staging:
            staging.flush(self._stream)

    def _synchronized(self) -> None:
        self._driver.enter()
        self._driver.sync(self._stream)

    def _free_all(self) -> None:
        for address, free in self._memory.items():
            with contextlib.suppress(CudaError):  # after a fault every call answers with it
                free(address)
        self._memory.clear()

    def _on_close(self, call: Callable[..., None], *args: int) -> None:
        """Call it when the device closes, whatever the driver says by then."""

        def quietly() -> None:
            with contextlib.suppress(CudaError):
                call(*args)

        self._held.callback(quietly)
