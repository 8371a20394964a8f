"""Page-locked memory near a GPU, where a machine has several nodes of memory.

A GPU reads the memory of its own node up to twice as fast as that of another one.
"""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_CALLS = {"x86_64": (239, 238), "aarch64": (236, 237)}
"""Linux's numbers of `get_mempolicy` and `set_mempolicy`."""

_BIND = 2
_MOST_NODES = 1024

_Mask = ctypes.c_ulong * (_MOST_NODES // (8 * ctypes.sizeof(ctypes.c_ulong)))


@contextmanager
def near(node: int) -> Iterator[None]:
    """This thread's memory is taken from a node of the host meanwhile; -1: from wherever.

    Where the system does not let it, from wherever too.
    """
    before = _policy() if 0 <= node < _MOST_NODES else None
    bound = before is not None and _set_policy(_BIND, _mask_of(node))
    try:
        yield
    finally:
        if bound and before is not None:
            _set_policy(*before)


def _policy() -> tuple[int, "ctypes.Array[ctypes.c_ulong]"] | None:
    """What this thread's memory is taken from; None where that cannot be asked for."""
    mode, mask = ctypes.c_int(), _Mask()
    calls = _CALLS.get(platform.machine())
    if calls is None or _call(calls[0], ctypes.byref(mode), mask, _MOST_NODES, None, 0):
        return None
    return mode.value, mask


def _set_policy(mode: int, mask: "ctypes.Array[ctypes.c_ulong]") -> bool:
    calls = _CALLS[platform.machine()]
    # the kernel takes a count of bits, and looks at one less
    return not _call(calls[1], mode, mask, _MOST_NODES + 1)


def _mask_of(node: int) -> "ctypes.Array[ctypes.c_ulong]":
    mask, bits = _Mask(), 8 * ctypes.sizeof(ctypes.c_ulong)
    mask[node // bits] = 1 << node % bits
    return mask


def _call(number: int, *args: object) -> int:
    return int(ctypes.CDLL(None).syscall(number, *args))
