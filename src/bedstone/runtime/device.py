"""What the loader and a session ask of a device.

A device knows memory, modules and launch lists. It never sees a manifest: names, shapes and
expressions are settled before it is asked for anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.modules import Artifact
from bedstone.spec.manifest import ParamType, TensorMap

BUFFER_ALIGN = 64
"""Every buffer and scratch the runtime allocates starts on a multiple of this many bytes. A weight
used in place lies where its file has it: aligned to its element type only."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Device memory that lives as long as this object; all zero when it was just allocated."""

    address: int
    nbytes: int
    owner: object = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Tap:
    """After repetition r of a replay, `nbytes` bytes at `source` go to host `sink + r * nbytes`."""

    source: int
    sink: int
    nbytes: int


class Device(Protocol):
    """One device of this process."""

    @property
    def name(self) -> str:
        """What a caller names it by."""

    def free_bytes(self) -> int:
        """Memory that can still be allocated."""

    def allocate(self, nbytes: int, /) -> Memory:
        """Zero-filled memory on a page boundary.

        Raises `CapacityError`: there is not as much.
        """

    def adopt(self, data: NDArray[np.uint8], /) -> Memory | None:
        """Host bytes [n] used where they lie, or None where the device cannot reach them."""

    def write(self, address: int, data: NDArray[np.uint8], /) -> None:
        """Copy host bytes [n] to `address`."""

    def write_rows(self, address: int, pitch: int, rows: NDArray[np.uint8], /) -> None:
        """Copy host rows [rows, width], which may be strided, to rows `pitch` bytes apart."""

    def read(self, address: int, nbytes: int, /) -> NDArray[np.uint8]:
        """A host copy of `nbytes` bytes at `address`."""

    def clear(self, address: int, nbytes: int, /) -> None:
        """Set `nbytes` bytes at `address` to zero."""

    def function(self, artifact: Artifact, entry: str, params: tuple[ParamType, ...], /) -> int:
        """The handle of a kernel whose parameters are exactly `params`.

        Raises `KernelError`: the module does not load, lacks `entry`, or states other parameters.
        """

    def builtin(self, entry: str, params: tuple[ParamType, ...], /) -> int:
        """The handle of a built-in of the runtime (`extern:<name>`).

        Raises `KernelError`: the device has none of that name.
        """

    def tensor_map(self, tensor: TensorMap, address: int, nbytes: int, /) -> bytes:
        """The 128 byte descriptor of a tensor over `nbytes` bytes at `address`.

        Raises `KernelError`: the device has no tensor maps.
        """

    def reserve_shared(self, nbytes: int, /) -> None:
        """Get ready for launches that share up to `nbytes` bytes among a block."""

    def replay(self, launches: int, count: int, repeat: int, taps: Sequence[Tap], /) -> None:
        """Run the launch list at host address `launches`, `repeat` times, and wait for it."""

    def close(self) -> None:
        """Let go of everything; nothing may be asked afterwards."""
