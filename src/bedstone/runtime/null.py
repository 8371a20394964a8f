"""A device that runs nothing and checks what it is given.

Addresses are numbers without memory behind them. A replay reads the launch list the way a real
device would and refuses an unknown function or an argument list or pack outside of it.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import DeviceError, KernelError
from bedstone.runtime.device import Memory, Tap
from bedstone.runtime.image import LAUNCH_WORDS
from bedstone.runtime.modules import Artifact
from bedstone.spec.manifest import BufferParam, ParamType, StateParam, TensorMap

_PAGE = 4096
_FIRST_ADDRESS = 2**32
_FREE_BYTES = 2**40
_LAUNCH_FIELDS = ("entry", "args", "x", "y", "z", "shared", "active")


@dataclass(frozen=True, slots=True)
class NullKernel:
    """What a handle stands for."""

    module: str
    entry: str
    params: tuple[ParamType, ...]


class NullDevice:
    """Memory is a counter, a replay is an inspection."""

    name = "null"

    def __init__(self) -> None:
        self._next = _FIRST_ADDRESS
        self._kernels: list[NullKernel] = []
        self._shared = 0

    def free_bytes(self) -> int:
        """More than anything asks for."""
        return _FREE_BYTES

    def allocate(self, nbytes: int) -> Memory:
        """An address that nothing else was given, with a page between it and the next."""
        address = self._next
        self._next += -(-nbytes // _PAGE) * _PAGE + _PAGE
        return Memory(address, nbytes, None)

    def adopt(self, _data: NDArray[np.uint8]) -> Memory | None:
        """The device cannot reach the host."""
        return None

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Check that the target was allocated."""
        self._require(address, data.size)

    def write_rows(self, address: int, pitch: int, rows: NDArray[np.uint8]) -> None:
        """Check that the target was allocated."""
        self._require(address, (rows.shape[0] - 1) * pitch + rows.shape[1])

    def read(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """Zeros."""
        self._require(address, nbytes)
        return np.zeros(nbytes, np.uint8)

    def clear(self, address: int, nbytes: int) -> None:
        """Check that the target was allocated."""
        self._require(address, nbytes)

    def function(self, artifact: Artifact, entry: str, params: tuple[ParamType, ...]) -> int:
        """A handle for whatever the launch says it is."""
        self._kernels.append(NullKernel(artifact.module, entry, params))
        return len(self._kernels)

    def builtin(self, entry: str, _params: tuple[ParamType, ...]) -> int:
        """There are none."""
        raise KernelError(f"unsupported extern `{entry}`: the null device has no built-ins")

    def tensor_map(self, _tensor: TensorMap, address: int, nbytes: int) -> bytes:
        """A blank descriptor."""
        self._require(address, nbytes)
        return bytes(128)

    def reserve_shared(self, nbytes: int) -> None:
        """The most a launch may ask for."""
        self._shared = max(self._shared, nbytes)

    def replay(self, launches: int, count: int, _repeat: int, taps: Sequence[Tap]) -> None:
        """Inspect every launch of the list."""
        table = _words(launches, count * LAUNCH_WORDS).reshape(count, LAUNCH_WORDS)
        for index, row in enumerate(table.tolist()):
            self._inspect(index, dict(zip(_LAUNCH_FIELDS, row, strict=True)))
        for tap in taps:
            self._require(tap.source, tap.nbytes)

    def close(self) -> None:
        """Nothing to let go of."""

    def _inspect(self, index: int, launch: dict[str, int]) -> None:
        if not 1 <= launch["entry"] <= len(self._kernels):
            raise DeviceError(f"launch #{index} runs no known function: {launch['entry']}")
        kernel = self._kernels[launch["entry"] - 1]
        if launch["active"] not in (0, 1) or min(launch["x"], launch["y"], launch["z"]) == 0:
            raise DeviceError(f"launch #{index} (`{kernel.entry}`) has an empty grid: {launch}")
        if launch["shared"] > self._shared:
            raise DeviceError(
                f"launch #{index} (`{kernel.entry}`) shares {launch['shared']} bytes, "
                f"{self._shared} were reserved"
            )
        words = _words(launch["args"], len(kernel.params)).tolist()
        for param, word in zip(kernel.params, words, strict=True):
            if isinstance(param, BufferParam | StateParam):
                self._require(word, 1)

    def _require(self, address: int, nbytes: int) -> None:
        if nbytes and not _FIRST_ADDRESS <= address <= address + nbytes <= self._next:
            raise DeviceError(f"{nbytes} bytes at address {address:#x} were never allocated")


def _words(address: int, count: int) -> NDArray[np.uint64]:
    return np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(address))
