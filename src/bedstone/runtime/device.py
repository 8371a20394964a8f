"""What the loader and a session ask of a device.

A device knows memory, modules and launch lists. It never sees a manifest: names, shapes and
expressions are settled before it is asked for anything.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.image import Capture
from bedstone.runtime.lower import Kernel
from bedstone.runtime.modules import Artifact
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import TensorMap


@dataclass(frozen=True, slots=True)
class Memory:
    """Device memory that lives as long as this object; all zero when it was just allocated.

    `reserved` bytes of addresses belong to it, more than `nbytes` where it may grow in place.
    """

    address: int
    nbytes: int
    owner: object = field(repr=False, compare=False)
    reserved: int = 0


class StateNeed(Frozen):
    """A state of `nbytes` bytes, leased `unit` bytes (a page, a slot) at a time; 0 if it is not.

    `many` says that several sequences are to fill it.
    """

    nbytes: int
    unit: int
    many: bool = False


class Stored(Frozen):
    """A tensor's bytes on the host: mapped, and where a file holds them if one does."""

    view: NDArray[np.uint8]
    file: tuple[Path, int] | None = None


class Upload(Frozen):
    """`rows` rows of `width` bytes, `source_pitch` apart in a tensor, to device memory.

    `source` is where the first row starts in the tensor, `address` where it goes; there the rows
    lie `target_pitch` apart. Rows without gaps on either side are one.
    """

    stored: Stored
    source: int
    source_pitch: int
    address: int
    target_pitch: int
    rows: int
    width: int

    @property
    def nbytes(self) -> int:
        """Bytes that arrive."""
        return self.rows * self.width


class RowCopy(Frozen):
    """A copy of `rows` rows of `width` bytes, which lie as many bytes apart as a pitch says."""

    source: int
    source_pitch: int
    target: int
    target_pitch: int
    rows: int
    width: int

    @property
    def whole(self) -> bool:
        """Whether it is one run of bytes on either side."""
        return self.rows == 1 or self.source_pitch == self.target_pitch == self.width


class Tap(Frozen):
    """After repetition r of a replay, `nbytes` bytes at `source` go to host `sink + r * nbytes`."""

    source: int
    sink: int
    nbytes: int


class BuiltinUse(Frozen):
    """One launch of a built-in: bytes from each pointer on, and its numbers in the order given.

    `largest` are the numbers at the maxima of the vars, `reachable` every combination that a run
    can give, empty where the kernel pins nothing.
    """

    site: str
    room: tuple[int, ...]
    largest: tuple[int, ...]
    reachable: tuple[tuple[int, ...], ...]


class Pending(Protocol):
    """Replays under way."""

    def wait(self) -> None:
        """Return once they are over and every tap's sink is filled.

        Raises `DeviceError`: a launch failed.
        """


class Finished:
    """Replays, copies or a remap that were over when they were asked for."""

    ready = True

    def wait(self) -> None:
        """Nothing is left to wait for."""

    def close(self) -> None:
        """Nothing is under way."""


class Moving(Protocol):
    """Bytes, or the memory itself, on their way, while replays asked for later run."""

    @property
    def ready(self) -> bool:
        """Whether `wait` returns at once."""

    def wait(self) -> None:
        """Return once all is there, to the replays asked for from then on.

        Raises `DeviceError`: it will never be.
        """


class Arriving(Protocol):
    """Copies under way. Nothing that they write may be let go of before one of these returns."""

    def wait(self) -> None:
        """Return once everything has arrived.

        Raises `WeightError`: a file no longer holds what its header said.
        """

    def close(self) -> None:
        """Give up what has not begun, and return once nothing is under way."""


class Places(NamedTuple):
    """Some elements of an array: where they are in the order of memory [n], and between which.

    They lie in rows `top` to `bottom`, in columns `left` to `right`, all of these inside.
    """

    flat: NDArray[np.intp]
    top: int
    bottom: int
    left: int
    right: int


class Opened(Protocol):
    """Memory of which parts are written, each before any replay asked for later."""

    def write(self, offset: int, data: NDArray[np.uint8], /) -> None:
        """Copy host bytes [n] to `offset` on."""

    def scatter(self, places: Places, width: int, data: NDArray[np.generic], /) -> None:
        """Copy elements [n] to those places of an array of their type, of `width` a row."""


class Device(Protocol):
    """One device of this process."""

    @property
    def name(self) -> str:
        """What a caller names it by."""

    @property
    def ahead(self) -> int:
        """How many replays may be asked for before the first is waited for; more gain nothing."""

    @property
    def granule(self) -> int:
        """Bytes that memory of states comes in multiples of; 1 where any number will do."""

    def free_bytes(self) -> int:
        """Memory that can still be allocated."""

    def allocate(self, nbytes: int, /) -> Memory:
        """Zero-filled memory on a boundary of 256 bytes at least.

        Raises `CapacityError`: there is not as much.
        """

    def allocate_inputs(self, nbytes: int, /) -> Memory:
        """As `allocate`, for what `write` changes before replays."""

    def allocate_host(self, nbytes: int, /) -> Memory:
        """As `allocate`, in the host's memory where the device has its own."""

    def allocate_states(self, needs: Sequence[StateNeed], chunk: int, /) -> tuple[Memory, ...]:
        """Memory of states, those with a unit in pieces of `chunk` bytes.

        Their addresses go further than what there is if it can `remap` to them (`Memory.reserved`).

        Raises `CapacityError`: there is not as much.
        """

    def chunk(self, needs: Sequence[StateNeed], /) -> int:
        """Bytes of the pieces in which memory can go from one of these states to another."""

    def remap(self, moves: Sequence[tuple[int, int]], chunk: int, /) -> Moving:
        """Take the memory of chunks at some addresses and put it behind others, (from, to) each.

        What was asked for before may use the first; nothing else may until it has arrived, and is
        zero. One at a time.
        """

    def transfer(self, copies: Sequence[RowCopy], /) -> Moving:
        """Copy between states and memory of the host, in the order of these calls.

        What was asked for before is over first; what is asked for after does not wait.
        """

    def release(self, memory: Memory, /) -> None:
        """Let go of allocated memory that nothing uses any more."""

    def adopt(self, data: NDArray[np.uint8], /) -> Memory | None:
        """Host bytes [n] used where they lie, or None where the device cannot reach them."""

    def write(self, address: int, data: NDArray[np.uint8], /) -> None:
        """Copy host bytes [n] to `address`, before any replay asked for later."""

    def open(self, memory: Memory, /) -> "Opened":
        """Memory to be written part by part, again and again."""

    def upload(self, uploads: Sequence[Upload], done: Callable[[int], None], /) -> "Arriving":
        """Begin copies, and tell whoever waits how many bytes have arrived from time to time.

        Raises `WeightError`: a file no longer holds what its header said.
        """

    def read(self, address: int, nbytes: int, /) -> NDArray[np.uint8]:
        """A host copy of `nbytes` bytes at `address`, after every replay asked for earlier."""

    def clear(self, address: int, nbytes: int, /) -> None:
        """Set `nbytes` bytes at `address` to zero, between the replays before and after."""

    def copy(self, target: int, source: int, nbytes: int, /) -> None:
        """Copy device memory, between the replays before and after; the two do not overlap."""

    def misfits(self, artifacts: Iterable[Artifact], /) -> Iterator[str]:
        """Why modules do not run here and what to do, judged from their bytes; loads nothing.

        Raises `KernelError`: bytes that are no module of this device at all.
        """

    def function(self, artifact: Artifact, kernel: Kernel, /) -> int:
        """The handle of a kernel whose parameters are exactly those of its launches.

        Raises `KernelError`: the module does not load, lacks the entry, or states other parameters.
        """

    def builtin(self, kernel: Kernel, /) -> int:
        """The handle of a built-in of the runtime (`extern:<name>`).

        Raises `KernelError`: the device has none of that name, or it takes other parameters.
        """

    def admit(self, handle: int, use: BuiltinUse, /) -> None:
        """Accept a launch of a built-in.

        Raises `KernelError`: an operand is too small, or what is pinned does not run at a size.
        """

    def tensor_map(self, tensor: TensorMap, address: int, nbytes: int, /) -> bytes:
        """The 128 byte descriptor of a tensor over `nbytes` bytes at `address`.

        Raises `KernelError`: the device has no tensor maps, or the tensor does not fit.
        """

    def reserve_shared(self, nbytes: Mapping[int, int], /) -> None:
        """Get ready for launches of functions whose blocks share up to that many bytes."""

    def admit_blocks(self, blocks: Mapping[int, int], /) -> None:
        """Accept launches of functions that have up to so many blocks, memory being reserved.

        Raises `TargetError`: a function's blocks wait for each other, and the device does not hold
        all of them at once.
        """

    def replay(self, capture: Capture, repeat: int, taps: Sequence[Tap], /) -> Pending:
        """Run a capture's launches `repeat` times, after everything asked for before."""

    def close(self) -> None:
        """Let go of everything; nothing may be asked afterwards."""
