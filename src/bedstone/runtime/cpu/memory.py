"""Memory of this process: pages of the size that suits, and files read into them.

Kernels walk through weights faster than the table of small pages is walked: with pages of 2 MiB a
step reads its weights up to a third faster than where a file is mapped. So weights are copied
where memory is plenty (`bedstone.runtime.cpu.copies`).
"""

import ctypes
import mmap

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CapacityError
from bedstone.runtime.device import Memory

LARGE_PAGE = 2 * 1024 * 1024


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


def view_of(address: int, nbytes: int) -> NDArray[np.uint8]:
    """The bytes at an address, not copied."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
