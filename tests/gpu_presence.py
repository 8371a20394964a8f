"""Whether the machine has a GPU, asked of its driver alone."""

import ctypes


def has_gpu() -> bool:
    """Whether the machine has a CUDA device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return False
    return count.value > 0
