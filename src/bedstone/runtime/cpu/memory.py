"""Memory of this process: pages of the size that suits, and files read into them.

Kernels walk through weights faster than the table of small pages is walked: with pages of 2 MiB a
step reads its weights up to a third faster than where a file is mapped. So weights are copied
where memory is plenty (`bedstone.runtime.cpu.copies`).
"""

import ctypes
import mmap
import os

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CapacityError, DeviceError
from bedstone.runtime.device import Memory

LARGE_PAGE = 2 * 1024 * 1024

_NO_RESERVE = 0x4000
"""Linux's `MAP_NORESERVE`: addresses that are not counted as if all were used."""

_DONT_NEED = 4
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def map_zeros(nbytes: int, *, large: bool) -> Memory:
    """Zero-filled pages, which the system commits as they are touched; `large` where it can.

    Raises `CapacityError`: the system refuses as much.
    """
    spare = LARGE_PAGE if large and nbytes >= LARGE_PAGE else 0
    try:
        pages = mmap.mmap(-1, max(nbytes, 1) + spare, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise CapacityError(f"{nbytes} bytes of memory are not to be had: {error}") from error
    if spare:
        pages.madvise(mmap.MADV_HUGEPAGE)
    held = np.frombuffer(pages, np.uint8)
    address = held.ctypes.data
    return Memory(address + (-address % LARGE_PAGE if spare else 0), nbytes, held)


def map_sparse(nbytes: int, *, large: bool) -> Memory | None:
    """Zero-filled pages, of which few will be touched at a time; None where the system counts all.

    Where they are `large` they start on a boundary of such.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    try:
        pages = mmap.mmap(-1, nbytes + LARGE_PAGE, flags)
    except (OSError, OverflowError):
        return None
    pages.madvise(mmap.MADV_HUGEPAGE if large else mmap.MADV_NOHUGEPAGE)
    held = np.frombuffer(pages, np.uint8)
    address = held.ctypes.data
    return Memory(address + -address % LARGE_PAGE, nbytes, held)


def forget(address: int, nbytes: int) -> None:
    """Give whole pages back: they read as zero, and take memory once they are touched again.

    Raises `DeviceError`: the system refuses.
    """
    if _LIBC.madvise(address, nbytes, _DONT_NEED):
        why = os.strerror(ctypes.get_errno())
        raise DeviceError(f"{nbytes} bytes of memory are not taken back: {why}")


def view_of(address: int, nbytes: int) -> NDArray[np.uint8]:
    """The bytes at an address, not copied."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
