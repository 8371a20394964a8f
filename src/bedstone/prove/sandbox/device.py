"""The device a candidate runs on: moving tensors there, emptying its caches, timing calls."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Protocol

import torch

from bedstone.prove.results import ResultError

DELAY_CYCLES = 400_000
"""How long a GPU is kept busy before a call, so that launching it costs no time on the GPU."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One call: what it returned and its time; how long the device was busy before and beside."""

    result: Any
    ns: int
    before_ns: int = 0
    beside_ns: int = 0


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
        return Timing(result, perf_counter_ns() - start)


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
        """The L2 is emptied as part of the delay before a call."""

    def settle(self) -> None:
        """Wait for every stream."""
        torch.cuda.synchronize()

    def time(self, call: Callable[[], Any]) -> Timing:
        """Events on the current stream; what other streams then still do stands beside."""
        first, begin, end = _event(), _event(), _event()
        torch.cuda.synchronize()
        start = perf_counter_ns()
        first.record()
        self._other.add_(1)
        torch.cuda._sleep(DELAY_CYCLES)  # type: ignore[no-untyped-call]  # noqa: SLF001
        begin.record()
        result = call()
        end.record()
        torch.cuda.synchronize()
        wall = perf_counter_ns() - start
        before, ns = (int(a.elapsed_time(b) * 1e6) for a, b in ((first, begin), (begin, end)))
        return Timing(result, ns, before, max(0, wall - before - ns))


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
