"""A device that runs nothing and checks what it is given.

Addresses are numbers without memory behind them. A replay reads the launch list the way a real
device would and refuses an unknown function or an argument list or pack outside of it.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import DeviceError, KernelError
from bedstone.runtime.device import (
    BuiltinUse,
    Finished,
    Memory,
    Places,
    RowCopy,
    StateNeed,
    Tap,
    Upload,
)
from bedstone.runtime.image import LAUNCH_WORDS, Capture
from bedstone.runtime.lower import Kernel
from bedstone.runtime.modules import Artifact
from bedstone.spec.manifest import BufferParam, StateParam, TensorMap

_PAGE = 4096
_FIRST_ADDRESS = 2**32
_FREE_BYTES = 2**40
_LAUNCH_FIELDS = ("entry", "args", "x", "y", "z", "shared", "active")


class NullDevice:
    """Memory is a counter, a replay is an inspection."""

    name = "null"
    ahead = 1
    granule = 1

    def __init__(self) -> None:
        self._next = _FIRST_ADDRESS
        self._kernels: list[Kernel] = []
        self._shared: dict[int, int] = {}

    def free_bytes(self) -> int:
        """More than anything asks for."""
        return _FREE_BYTES

    def allocate(self, nbytes: int) -> Memory:
        """An address that nothing else was given, with a page between it and the next."""
        address = self._next
        self._next += -(-nbytes // _PAGE) * _PAGE + _PAGE
        return Memory(address, nbytes, None)

    def allocate_inputs(self, nbytes: int) -> Memory:
        """Addresses like any other."""
        return self.allocate(nbytes)

    def allocate_host(self, nbytes: int) -> Memory:
        """Addresses like any other."""
        return self.allocate(nbytes)

    def allocate_states(self, needs: Sequence[StateNeed], _chunk: int) -> tuple[Memory, ...]:
        """Addresses like any other."""
        return tuple(self.allocate(need.nbytes) for need in needs)

    def chunk(self, _needs: Sequence[StateNeed]) -> int:
        """A page: nothing is ever moved."""
        return _PAGE

    def remap(self, moves: Sequence[tuple[int, int]], chunk: int) -> Finished:
        """Check that all of it was allocated."""
        for place in (place for move in moves for place in move):
            self._require(place, chunk)
        return Finished()

    def transfer(self, copies: Sequence[RowCopy]) -> Finished:
        """Check that both ends were allocated."""
        for each in copies:
            ends = ((each.source, each.source_pitch), (each.target, each.target_pitch))
            for address, pitch in ends:
                self._require(address, (each.rows - 1) * pitch + each.width)
        return Finished()

    def release(self, memory: Memory) -> None:
        """Check that it was allocated."""
        self._require(memory.address, memory.nbytes)

    def adopt(self, _data: NDArray[np.uint8]) -> Memory | None:
        """The device cannot reach the host."""
        return None

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Check that the target was allocated."""
        self._require(address, data.size)

    def open(self, memory: Memory) -> "OpenedNull":
        """What checks that the target was allocated."""
        return OpenedNull(self._require, memory.address)

    def upload(self, uploads: Sequence[Upload], done: Callable[[int], None]) -> Finished:
        """Check that the targets were allocated."""
        for upload in uploads:
            if upload.nbytes:
                end = (upload.rows - 1) * upload.target_pitch + upload.width
                self._require(upload.address, end)
        done(sum(upload.nbytes for upload in uploads))
        return Finished()

    def read(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """Zeros."""
        self._require(address, nbytes)
        return np.zeros(nbytes, np.uint8)

    def clear(self, address: int, nbytes: int) -> None:
        """Check that the target was allocated."""
        self._require(address, nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Check that both were allocated."""
        self._require(target, nbytes)
        self._require(source, nbytes)

    def misfits(self, _artifacts: Iterable[Artifact]) -> Iterator[str]:
        """Every module fits: none is run."""
        return iter(())

    def function(self, _artifact: Artifact, kernel: Kernel) -> int:
        """A handle for whatever the launch says it is."""
        self._kernels.append(kernel)
        return len(self._kernels)

    def builtin(self, kernel: Kernel) -> int:
        """There are none."""
        raise KernelError(f"unsupported extern `{kernel.entry}`: the null device has no built-ins")

    def admit(self, handle: int, use: BuiltinUse) -> None:
        """There are none."""
        raise KernelError(f"{use.site}: the null device has no built-in {handle}")

    def tensor_map(self, _tensor: TensorMap, address: int, nbytes: int) -> bytes:
        """A blank descriptor."""
        self._require(address, nbytes)
        return bytes(128)

    def reserve_shared(self, nbytes: Mapping[int, int]) -> None:
        """The most a launch of each function may ask for."""
        for handle, most in nbytes.items():
            self._shared[handle] = max(self._shared.get(handle, 0), most)

    def admit_blocks(self, blocks: Mapping[int, int]) -> None:
        """As many as there are."""

    def replay(self, capture: Capture, _repeat: int, taps: Sequence[Tap]) -> Finished:
        """Inspect every launch of the list."""
        words = _words(capture.address, capture.count * LAUNCH_WORDS)
        table = words.reshape(capture.count, LAUNCH_WORDS)
        for index, row in enumerate(table.tolist()):
            self._inspect(index, dict(zip(_LAUNCH_FIELDS, row, strict=True)))
        for tap in taps:
            self._require(tap.source, tap.nbytes)
        return Finished()

    def close(self) -> None:
        """Nothing to let go of."""

    def _inspect(self, index: int, launch: dict[str, int]) -> None:
        if not 1 <= launch["entry"] <= len(self._kernels):
            raise DeviceError(f"launch #{index} runs no known function: {launch['entry']}")
        kernel = self._kernels[launch["entry"] - 1]
        if launch["active"] not in (0, 1) or min(launch["x"], launch["y"], launch["z"]) == 0:
            raise DeviceError(f"launch #{index} (`{kernel.entry}`) has an empty grid: {launch}")
        reserved = self._shared.get(launch["entry"], 0)
        if launch["shared"] > reserved:
            raise DeviceError(
                f"launch #{index} (`{kernel.entry}`) shares {launch['shared']} bytes, "
                f"{reserved} were reserved"
            )
        words = _words(launch["args"], len(kernel.params)).tolist()
        for param, word in zip(kernel.params, words, strict=True):
            if isinstance(param, BufferParam | StateParam):
                self._require(word, 1)

    def _require(self, address: int, nbytes: int) -> None:
        if nbytes and not _FIRST_ADDRESS <= address <= address + nbytes <= self._next:
            raise DeviceError(f"{nbytes} bytes at address {address:#x} were never allocated")


class OpenedNull:
    """Addresses that parts are written to."""

    __slots__ = ("_address", "_require")

    def __init__(self, require: Callable[[int, int], None], address: int) -> None:
        self._require, self._address = require, address

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """Check that the target was allocated."""
        self._require(self._address + offset, data.size)

    def scatter(self, places: Places, width: int, data: NDArray[np.generic]) -> None:
        """Check that the target was allocated."""
        self._require(self._address, (places.bottom * width + places.right + 1) * data.itemsize)


def _words(address: int, count: int) -> NDArray[np.uint64]:
    return np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(address))
