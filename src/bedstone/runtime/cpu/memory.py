"""Memory of this process: pages of the size that suits, and files read into them.

Kernels walk through weights faster than the table of small pages is walked: with pages of 2 MiB a
step reads its weights up to a third faster than where a file is mapped. So weights are copied
where memory is plenty, by reads that leave no mapped page behind.
"""

import ctypes
import mmap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CapacityError
from bedstone.runtime.device import Memory, Upload
from bedstone.runtime.files import Files
from bedstone.runtime.weights import rows_of

LARGE_PAGE = 2 * 1024 * 1024
_PIECE = 8 * 1024 * 1024


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


def copy_all(uploads: Sequence[Upload], threads: int, done: Callable[[int], None]) -> None:
    """Carry out copies from files, or from where the host has the bytes.

    Raises `WeightError`: a file no longer holds what its header said.
    """
    arrived = 0
    with ExitStack() as held, ThreadPoolExecutor(threads) as readers:
        for nbytes in readers.map(partial(_copy, Files(held)), _pieces(uploads)):
            arrived += nbytes
            done(arrived)


def _pieces(uploads: Sequence[Upload]) -> Iterator[Upload]:
    """Copies of some megabytes at most, those of many rows as they are."""
    for upload in uploads:
        if upload.rows != 1:
            yield upload
            continue
        for at in range(0, upload.width, _PIECE):
            yield Upload(
                upload.stored,
                upload.source + at,
                upload.source_pitch,
                upload.address + at,
                upload.target_pitch,
                1,
                min(_PIECE, upload.width - at),
            )


def _copy(files: Files, upload: Upload) -> int:
    if upload.nbytes and upload.rows == 1 and upload.stored.file is not None:
        path, start = upload.stored.file
        files.read(path, start + upload.source, upload.address, upload.width)
    elif upload.nbytes:
        span = view_of(upload.address, (upload.rows - 1) * upload.target_pitch + upload.width)
        shape = (upload.rows, upload.width)
        target = np.lib.stride_tricks.as_strided(span, shape, (upload.target_pitch, 1))
        np.copyto(target, rows_of(upload))
    return upload.nbytes


def view_of(address: int, nbytes: int) -> NDArray[np.uint8]:
    """The bytes at an address, not copied."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
