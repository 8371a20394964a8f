"""Functions a candidate has no business replacing: what they are before it is loaded, and after."""

import statistics
import threading
import time
from operator import attrgetter

import torch

from bedstone.prove import results
from bedstone.prove.sandbox import device, wire

_GUARDED = {
    time: ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns"),
    statistics: ("mean", "median", "fmean"),
    threading: ("active_count",),
    torch: ("empty", "empty_like", "equal", "allclose", "zeros", "frombuffer"),
    torch.Tensor: ("copy_", "clone", "__eq__", "__torch_function__", "data_ptr", "is_contiguous"),
    torch.cuda: ("synchronize", "Event.record", "Event.elapsed_time", "current_stream"),
    wire: ("send", "receive"),
    device: ("perf_counter_ns", "Cpu.time", "Cuda.time", "Cpu.flush", "Cuda.flush"),
    results: ("as_tensor", "named_results", "torch_dtype"),
}
Snapshot = dict[str, object]


def snapshot() -> Snapshot:
    """What each guarded name stands for now."""
    return {
        f"{getattr(owner, '__name__', owner)}.{name}": attrgetter(name)(owner)
        for owner, names in _GUARDED.items()
        for name in names
    }
