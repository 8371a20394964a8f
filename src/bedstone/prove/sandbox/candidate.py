"""The parent's end of a candidate: asks, waits no longer than allowed, believes nothing twice."""

import os
import signal
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter_ns
from typing import IO, Any, Self

import torch

from bedstone.prove.results import Expected
from bedstone.prove.sandbox.arena import Arena, Slot, plan_slots, shared_memory
from bedstone.prove.sandbox.wire import Message, WireError, receive, send
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.prove.write import build_request, write_sources
from bedstone.spec.axes import Shape
from bedstone.spec.solution import Solution
from bedstone.spec.trace import Status

SLOTS = 2
"""Calls laid out side by side: consecutive ones never have the same addresses."""

_LOG_TAIL = 64 * 1024


class CandidateError(Exception):
    """The candidate failed; `status` is the outcome that is."""

    def __init__(self, status: Status, message: str, log: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.log = log


@dataclass(frozen=True, slots=True)
class Layout:
    """The interface of a candidate under given sizes.

    `tensors` are element type and shape by input that is a tensor, `order` every input in the
    order of the call.
    """

    tensors: Mapping[str, tuple[str, Shape]]
    order: tuple[str, ...]
    outputs: tuple[Expected, ...]

    @property
    def own_outputs(self) -> dict[str, tuple[str, Shape]]:
        """Outputs with memory of their own; a scalar has one element."""
        return {o.name: (o.dtype, o.shape or ()) for o in self.outputs if o.target is None}


@dataclass(frozen=True, slots=True)
class Call:
    """One call in nanoseconds.

    `ns` is its time by the child's clock, `before_ns` and `beside_ns` how long the device was busy
    with what is not the call's; `round_trip_ns` is all of it by the parent's clock, `idle_ns` an
    exchange just before in which nothing was done.
    """

    ns: int
    before_ns: int
    beside_ns: int
    round_trip_ns: int
    idle_ns: int
    setup_ns: int
    hacks: tuple[str, ...]


class Candidate:
    """A Solution in a process of its own, until the `with` block ends.

    Args:
        zygote: What forks the process.
        layout: The interface it is called through.
        device: `cpu` or `cuda`.
        flush: Bytes written before each call so that caches hold none of its data.
        seconds: How long everything together may take.
    """

    def __init__(
        self, zygote: Zygote, layout: Layout, device: str, flush: int, seconds: float
    ) -> None:
        self._zygote = zygote
        self._layout = layout
        self._device = device
        self._deadline = monotonic() + seconds
        self._seconds = seconds
        self._asked = 0
        self.slots, size = plan_slots(layout.tensors, layout.own_outputs, SLOTS)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in close)
        memory = shared_memory(size)
        try:
            self._arena = Arena(memory, size)
            self._socket, theirs = socket.socketpair()
            with theirs:
                self._child: int | None = zygote.spawn(theirs, memory, self._log.fileno())
        finally:
            os.close(memory)
        opened = False
        try:
            self._open(size, flush)
            opened = True
        finally:
            if not opened:
                self.close()

    def _open(self, size: int, flush: int) -> None:
        outputs = [[o.name, o.dtype, o.shape, o.target] for o in self._layout.outputs]
        halves = [[slot.inputs, slot.outputs] for slot in self.slots]
        slots = [[[place.json() for place in half] for half in slot] for slot in halves]
        self._ask("open", size=size, slots=slots, outputs=outputs, device=self._device, flush=flush)

    def build(self, solution: Solution, folder: Path) -> int:
        """Write a Solution's files under `folder` and load it; nanoseconds that took."""
        package = write_sources(solution, folder)
        spec = build_request(solution, self._zygote.cache or folder)
        taken: int = self._ask("build", folder=str(package), spec=spec)["ns"]
        return taken

    def _round_trip(self) -> int:
        """Nanoseconds an exchange takes in which nothing is done."""
        start = perf_counter_ns()
        self._ask("nothing")
        return perf_counter_ns() - start

    def prepare(self, turn: int, values: Mapping[str, Any]) -> None:
        """Lay out the inputs of call number `turn` and poison its outputs."""
        slot = self._slot(turn)
        scalars = {}
        for name in self._layout.order:
            if not isinstance(values[name], torch.Tensor):
                scalars[name] = values[name]
        for place in slot.inputs:
            self._arena.write(place, values[place.name])
        for place in slot.outputs:
            self._arena.poison(place)
        order = list(self._layout.order)
        self._ask("prepare", slot=turn % SLOTS, scalars=scalars, order=order)

    def call(self) -> Call:
        """Run the prepared call, its `setup` first, and time it by both clocks."""
        setup = self._ask("setup")["ns"]
        idle = self._round_trip()
        start = perf_counter_ns()
        reply = self._ask("call")
        round_trip = perf_counter_ns() - start
        ns, before, beside = (reply[name] for name in ("ns", "before_ns", "beside_ns"))
        if not all(isinstance(number, int) for number in (ns, before, beside, setup)):
            raise CandidateError("REWARD_HACK", "a time that is no integer")
        return Call(ns, before, beside, round_trip, idle, setup, tuple(map(str, reply["hacks"])))

    def fetch(self, turn: int) -> dict[str, torch.Tensor]:
        """Copies of what call number `turn`, the last one, left in every tensor, by name.

        Raises `CandidateError`: it wrote behind one of them.
        """
        self._ask("fetch")
        slot = self._slot(turn)
        places = (*slot.inputs, *slot.outputs)
        for place in places:
            if self._arena.overrun(place):
                message = f"memory behind the end of `{place.name}` was written"
                raise CandidateError("INCORRECT_NUMERICAL", message)
        return {place.name: self._arena.read(place) for place in places}

    def _slot(self, turn: int) -> Slot:
        return self.slots[turn % SLOTS]

    def _ask(self, do: str, **request: Any) -> Message:  # noqa: ANN401  (what a message carries)
        """Ask and wait for the answer to this very question."""
        self._asked += 1
        try:
            send(self._socket, {"do": do, "id": self._asked, **request})
            reply = receive(self._socket, self._deadline)
        except TimeoutError:
            message = f"`{do}` did not end within {self._seconds:g} s"
            raise CandidateError("TIMEOUT", message) from None
        except WireError:
            how = self.end()
            raise CandidateError("RUNTIME_ERROR", f"its process ended in `{do}`{how}") from None
        if reply.get("id") != self._asked:
            raise CandidateError("REWARD_HACK", "an answer to another question")
        if not reply.get("ok"):
            raise CandidateError(
                reply.get("status", "RUNTIME_ERROR"),
                str(reply.get("message", "failed")),
                str(reply.get("log", "")),
            )
        return reply

    def log(self) -> str:
        """The end of what the candidate printed."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_TAIL))
        return self._log.read().decode(errors="replace")

    def end(self) -> str:
        """Kill the process and all it started; by what signal it had ended before, if any."""
        if self._child is None:
            return ""
        child, self._child = self._child, None
        with suppress(OSError):
            self._socket.close()
        status = self._zygote.end(child)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return "" if number in (0, signal.SIGKILL) else f" by {signal.Signals(number).name}"

    def close(self) -> None:
        """End the process, if it has not, and forget what it printed."""
        self.end()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
