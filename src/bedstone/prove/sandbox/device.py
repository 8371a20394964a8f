"""The device a candidate runs on: moving tensors there, emptying its caches, timing calls."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Protocol

import torch

from bedstone.prove.results import ResultError


@dataclass(frozen=True, slots=True)
class Timing:
    """One call: what it returned, its time, and the time the device was busy beside that."""

    result: Any
    ns: int
    beside_ns: int


class Device(Protocol):
    """Where tensors are while a candidate works on them."""

    def load(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the device."""
        ...

    def store(self, result: torch.Tensor, into: torch.Tensor) -> None:
        """Copy a result back."""
        ...

    def flush(self) -> None:
        """Push other data out of the caches."""
        ...

    def settle(self) -> None:
        """Wait until the device has nothing left to do."""
        ...

    def time(self, call: Callable[[], Any]) -> Timing:
        """Run `call` to its end on the device, timed."""
        ...


class Cpu:
    """This machine's own cores; the caches are emptied by writing `flush` bytes."""

    def __init__(self, flush: int) -> None:
        self._other = torch.zeros(flush, dtype=torch.uint8)

    def load(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor itself, in the shared memory."""
        return tensor

    def store(self, result: torch.Tensor, into: torch.Tensor) -> None:
        """Copy a result back, unless it was made there."""
        if result.data_ptr() != into.data_ptr():
            into.copy_(result)

    def flush(self) -> None:
        """Write over as many bytes as the caches hold."""
        self._other.add_(1)

    def settle(self) -> None:
        """A call on the CPU has ended when it returns."""

    def time(self, call: Callable[[], Any]) -> Timing:
        """Wall clock around the call."""
        start = perf_counter_ns()
        result = call()
        return Timing(result, perf_counter_ns() - start, 0)


class Cuda:
    """The current CUDA device; its L2 is emptied by writing `flush` bytes."""

    def __init__(self, flush: int) -> None:
        self._other = torch.zeros(flush, dtype=torch.uint8, device="cuda")

    def load(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy in new device memory: no two calls have the same pointers."""
        return tensor.to("cuda")

    def store(self, result: torch.Tensor, into: torch.Tensor) -> None:
        """Copy a result back."""
        into.copy_(result)

    def flush(self) -> None:
        """Write over as many bytes as the L2 holds."""
        self._other.add_(1)

    def settle(self) -> None:
        """Wait for every stream."""
        torch.cuda.synchronize()

    def time(self, call: Callable[[], Any]) -> Timing:
        """Events on the current stream; the wall clock until every stream is idle stands beside."""
        begin, end = _event(), _event()
        torch.cuda.synchronize()
        start = perf_counter_ns()
        begin.record()
        result = call()
        end.record()
        torch.cuda.synchronize()
        wall = perf_counter_ns() - start
        ns = int(begin.elapsed_time(end) * 1e6)
        return Timing(result, ns, max(0, wall - ns))


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def device_named(name: str, flush: int = 0) -> Device:
    """The device `cpu` or `cuda`, which empties its caches by writing `flush` bytes."""
    return Cuda(flush) if name == "cuda" else Cpu(flush)


def require_plain(tensor: torch.Tensor, name: str, device: str) -> torch.Tensor:
    """A result where the Definition wants it, densely laid out; a `ResultError` if it is not."""
    if tensor.device.type != device:
        message = f"`{name}`: expected it on `{device}`, found it on `{tensor.device}`"
        raise ResultError("INCORRECT_DTYPE", message)
    if not tensor.is_contiguous():
        raise ResultError("INCORRECT_SHAPE", f"`{name}`: expected a contiguous tensor")
    return tensor
