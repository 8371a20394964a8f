"""The CPU device: kernels in shared objects, memory in anonymous maps."""

import ctypes
import fcntl
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import KernelError
from bedstone.runtime.abi import abi_symbol, require_abi
from bedstone.runtime.cpu.copies import Copies
from bedstone.runtime.cpu.memory import LARGE_PAGE, forget, map_sparse, map_zeros, view_of
from bedstone.runtime.cpu.replayer import Replayer, build_replayer
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
from bedstone.runtime.image import Capture
from bedstone.runtime.lower import Kernel
from bedstone.runtime.memory import rounded_up, runs
from bedstone.runtime.modules import Artifact
from bedstone.spec.manifest import TensorMap
from bedstone.target.features import lacks, read_features, stated_needs

# The dynamic linker keeps a shared object until the process ends and knows it by the path it was
# opened under, so each object is opened once a process and its descriptor is never reused.
LOADED: dict[str, ctypes.CDLL] = {}
_LOADING = threading.Lock()

WORTH_A_COPY = 64 * 1024
"""Bytes of a weight from which on it is copied to large pages."""

_WORTH_LARGE = 2
"""Large pages that a state has, in the mean, where memory goes from state to state in such."""

_APART = 4096
"""What the address of a state is a multiple of."""


class CpuDevice:
    """This process's cores and memory."""

    name = "cpu"
    ahead = 1
    granule = 1

    def __init__(self, cache: Path, threads: int | None = None) -> None:
        self._replayer = Replayer(build_replayer(cache), threads)
        self.threads = self._replayer.threads
        self._features = read_features()
        self._room = self.free_bytes() // 2

    def free_bytes(self) -> int:
        """Memory the system says it could still give out."""
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def allocate(self, nbytes: int) -> Memory:
        """Zero-filled pages, large ones where the system has them."""
        return map_zeros(nbytes, large=True)

    def allocate_inputs(self, nbytes: int) -> Memory:
        """Memory like any other: the host writes where kernels read."""
        return self.allocate(nbytes)

    def allocate_host(self, nbytes: int) -> Memory:
        """Memory like any other: the device is the host."""
        return self.allocate(nbytes)

    def allocate_states(self, needs: Sequence[StateNeed], chunk: int) -> tuple[Memory, ...]:
        """In one piece, committed as tokens arrive; a single sequence commits small pages.

        Alone few would fill a large page, and each takes 0.3 ms of the step that is the first to
        reach it, 60 of them in a model of 30 layers. With chunks each state has addresses for all
        that there is, where the system does not count addresses as memory.
        """
        sparse = self._sparse_states(needs, chunk) if chunk > 1 else None
        if sparse is not None:
            return sparse
        sizes = [-(-need.nbytes // _APART) * _APART for need in needs]
        whole = map_zeros(sum(sizes), large=any(need.many for need in needs))
        offsets = accumulate(sizes, initial=0)
        return tuple(
            Memory(whole.address + offset, need.nbytes, whole)
            for offset, need in zip(offsets, needs, strict=False)
        )

    def _sparse_states(self, needs: Sequence[StateNeed], chunk: int) -> tuple[Memory, ...] | None:
        most = sum(rounded_up(need.nbytes, chunk) for need in needs if need.unit)
        sizes = [most if need.unit else rounded_up(need.nbytes, chunk) for need in needs]
        whole = map_sparse(sum(sizes), large=chunk % LARGE_PAGE == 0)
        if whole is None:
            return None
        offsets = accumulate(sizes, initial=0)
        return tuple(
            Memory(whole.address + offset, need.nbytes, whole, most if need.unit else 0)
            for offset, need in zip(offsets, needs, strict=False)
        )

    def chunk(self, needs: Sequence[StateNeed]) -> int:
        """A large page, where states fill a few of them each; else a page of the system's."""
        pooled = [need.nbytes for need in needs if need.unit]
        large = sum(pooled) >= _WORTH_LARGE * len(pooled) * LARGE_PAGE
        return LARGE_PAGE if large else mmap.PAGESIZE

    def remap(self, moves: Sequence[tuple[int, int]], chunk: int) -> Finished:
        """Give back what lies at some addresses: others take as much when they are touched."""
        for start, stop in runs((source for source, _ in moves), chunk):
            forget(start, stop - start)
        return Finished()

    def transfer(self, copies: Sequence[RowCopy]) -> Finished:
        """Copy them now."""
        for each in copies:
            rows, width = (1, each.rows * each.width) if each.whole else (each.rows, each.width)
            for row in range(rows):
                source = each.source + row * each.source_pitch
                ctypes.memmove(each.target + row * each.target_pitch, source, width)
        return Finished()

    def release(self, _memory: Memory) -> None:
        """The pages go with the last that refers to them."""

    def adopt(self, data: NDArray[np.uint8]) -> Memory | None:
        """Bytes of this process are the device's: used where they lie, or copied to large pages.

        Few bytes are not worth a copy, and copies take half of the free memory at most.
        """
        if WORTH_A_COPY <= data.size <= self._room:
            self._room -= data.size
            return None
        return Memory(data.ctypes.data, data.size, data)

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Copy host bytes [n] to `address`."""
        ctypes.memmove(address, data.ctypes.data, data.size)

    def open(self, memory: Memory) -> "OpenedBytes":
        """The bytes themselves."""
        return OpenedBytes(view_of(memory.address, memory.nbytes))

    def upload(self, uploads: Sequence[Upload], done: Callable[[int], None]) -> Copies:
        """Copy rows from files, and from where the host has them."""
        return Copies(uploads, self.threads, done)

    def read(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """A copy of `nbytes` bytes at `address`."""
        return view_of(address, nbytes).copy()

    def clear(self, address: int, nbytes: int) -> None:
        """Set `nbytes` bytes at `address` to zero."""
        ctypes.memset(address, 0, nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy `nbytes` bytes."""
        ctypes.memmove(target, source, nbytes)

    def misfits(self, artifacts: Iterable[Artifact]) -> Iterator[str]:
        """Modules compiled for features that this machine lacks."""
        for each in artifacts:
            why = lacks(each.module, stated_needs(each.module, each.data), self._features)
            if why is not None:
                yield why

    def function(self, artifact: Artifact, kernel: Kernel) -> int:
        """The address of a kernel whose exported parameter list is exactly its launches'."""
        library = _load(artifact)
        stated = _symbol(library, abi_symbol(kernel.entry), artifact)
        text = ctypes.string_at(stated).decode(errors="replace")
        require_abi(artifact.module, kernel.entry, kernel.params, text)
        entry = _symbol(library, kernel.entry, artifact)
        self._introduce(library, kernel.entry, entry)
        return entry

    def _introduce(self, library: ctypes.CDLL, name: str, entry: int) -> None:
        """Tell a module what it asks for, and have its entry asked what it reads."""
        _tell(library, "bs_threads", ctypes.c_int32(self.threads))
        _tell(library, "bs_along", ctypes.c_void_p(self._replayer.along))
        reads = found(library, f"bs_reads_{name}")
        if reads is not None:
            self._replayer.ask(entry, reads)

    def builtin(self, kernel: Kernel) -> int:
        """There are none."""
        raise KernelError(f"unsupported extern `{kernel.entry}`: the cpu device has no built-ins")

    def admit(self, handle: int, use: BuiltinUse) -> None:
        """There are none."""
        raise KernelError(f"{use.site}: the cpu device has no built-in {handle}")

    def tensor_map(self, _tensor: TensorMap, _address: int, _nbytes: int) -> bytes:
        """There are none."""
        raise KernelError("the cpu device has no tensor maps")

    def reserve_shared(self, nbytes: Mapping[int, int]) -> None:
        """Give each thread what the blocks it runs share."""
        self._replayer.reserve(max(nbytes.values(), default=0))

    def admit_blocks(self, blocks: Mapping[int, int]) -> None:
        """Blocks run one after another: none waits for another."""

    def replay(self, capture: Capture, repeat: int, taps: Sequence[Tap]) -> Finished:
        """Run the capture's launch list `repeat` times; it is over on return."""
        self._replayer.replay(capture.address, capture.count, repeat, taps)
        return Finished()

    def close(self) -> None:
        """Stop the threads."""
        self._replayer.close()


class OpenedBytes:
    """Bytes [n] that parts are written to."""

    __slots__ = ("_bytes",)

    def __init__(self, held: NDArray[np.uint8]) -> None:
        self._bytes = held

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """Copy host bytes [n]."""
        self._bytes[offset : offset + data.size] = data

    def scatter(self, places: Places, _width: int, data: NDArray[np.generic]) -> None:
        """Copy elements [n]."""
        self._bytes.view(data.dtype)[places.flat] = data


def _load(artifact: Artifact) -> ctypes.CDLL:
    """The shared object with these very bytes: a sealed copy of what was hashed is opened."""
    with _LOADING:
        library = LOADED.get(artifact.sha256)
        if library is None:
            try:
                library = _open_sealed(artifact)
            except OSError as error:
                raise KernelError(
                    f"module `{artifact.module}` (`{artifact.path}`) does not load: {error}"
                ) from error
            LOADED[artifact.sha256] = library
        return library


def _open_sealed(artifact: Artifact) -> ctypes.CDLL:
    # a module's name may be anything; a file's may not
    label = f"bedstone-{artifact.sha256[:12]}"
    descriptor = os.memfd_create(label, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(artifact.data)
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except OSError:
        os.close(descriptor)
        raise


def _tell(library: ctypes.CDLL, name: str, value: ctypes.c_int32 | ctypes.c_void_p) -> None:
    """Set a variable of a module that has one of this name."""
    address = found(library, name)
    if address is not None:
        ctypes.memmove(address, ctypes.byref(value), ctypes.sizeof(value))


def found(library: ctypes.CDLL, name: str) -> int | None:
    """The address of a symbol, if the module exports it."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, name))
    except ValueError:
        return None


def _symbol(library: ctypes.CDLL, name: str, artifact: Artifact) -> int:
    address = found(library, name)
    if address is None:
        raise KernelError(f"module `{artifact.module}` (`{artifact.path}`) exports no `{name}`")
    return address
