"""A loaded package: memory, weights and programs, run one call at a time.

An executor is driven by one thread at a time; a second one waits. Nothing is printed. Inputs are
checked against what the manifest declares for them before they are copied.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError, DeviceError
from bedstone.runtime.arrays import numpy_dtype
from bedstone.runtime.device import Device, Memory, Pending, Places
from bedstone.runtime.domain import Limits, limits_of, require_inside
from bedstone.runtime.lower import Region
from bedstone.runtime.memory import Capacity, extents, upper_bounds
from bedstone.runtime.ports import (
    READ,
    WRITTEN,
    Input,
    Port,
    depends,
    elements_of,
)
from bedstone.runtime.program import LoadedProgram, require_declared, require_value
from bedstone.runtime.remap import Remaps, remaps_of
from bedstone.runtime.reserve import Reserve
from bedstone.runtime.sinks import Sinks
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import BufferKind, Domain, Manifest
from bedstone.spec.sampling import Knobs
from bedstone.verify.verified import Verified

_MOST_SINKS = 64


class Loaded(Frozen):
    """What loading made: the parts of a session."""

    verified: Verified
    device: Device
    memory: Mapping[Region, Memory]
    programs: Mapping[str, LoadedProgram]
    capacity: Capacity
    knobs: Knobs | None = None


class Run:
    """Replays of a program, perhaps still under way."""

    def __init__(
        self,
        program: str,
        pending: Pending,
        outputs: tuple[NDArray[np.generic], ...],
        lock: threading.RLock,
    ) -> None:
        self._program = program
        self._pending = pending
        self._outputs = outputs
        self._lock = lock

    def wait(self) -> tuple[NDArray[np.generic], ...]:
        """What each output held after each replay, once they are all over.

        Raises `DeviceError`: a launch failed.
        """
        try:
            with self._lock:
                self._pending.wait()
        except DeviceError as error:
            raise DeviceError(f"program `{self._program}`: {error}") from error
        return self._outputs


class Executor:
    """A loaded package on a device."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._device = loaded.device
        self._programs = loaded.programs
        self._upper = upper_bounds(self.manifest)
        self._ports = {
            n: self._port(n)
            for n, b in self.manifest.buffers.items()
            if b.kind in {*WRITTEN, *READ}
        }
        self._sinks: dict[tuple[tuple[str, ...], int], Sinks] = {}
        self._lock = threading.RLock()
        self._remaps = remaps_of(self._device, loaded.memory, self.capacity.exchange, self._lock)
        self._closed = False
        self._turn = 0

    @property
    def manifest(self) -> Manifest:
        """The manifest it was loaded from."""
        return self._loaded.verified.manifest

    @property
    def loaded(self) -> Loaded:
        """The parts of the session, for a tool that looks inside."""
        return self._loaded

    @property
    def verified(self) -> Verified:
        """The manifest with its proof."""
        return self._loaded.verified

    @property
    def capacity(self) -> Capacity:
        """What the pooled states hold, with notes where that is not what was asked for."""
        return self._loaded.capacity

    @property
    def remaps(self) -> Remaps | None:
        """How memory goes from state to state; None where it stays."""
        return self._remaps

    @property
    def knobs(self) -> Knobs | None:
        """The buffers of the package's sampler that no fill says how to write, where it has one."""
        return self._loaded.knobs

    @property
    def ahead(self) -> int:
        """How many runs may be started before the first is waited for; more gain nothing."""
        return self._device.ahead

    def write(
        self,
        buffer: str,
        data: NDArray[np.generic] | bytes,
        /,
        **vars: int,  # noqa: A002
    ) -> None:
        """Copy elements into the front of an input or inout buffer.

        `vars` are those of the call the data is for, where the buffer's domain depends on them;
        one that is not given counts at its maximum.

        Raises `CallerError`: the buffer takes no input, the data is too long, of another element
        type or outside the domain, or a var is.
        """
        port = self._named(buffer, WRITTEN)
        array = elements_of(buffer, data, port)
        call_vars = self._call_vars(f"input `{buffer}`", vars)
        if port.domain is not None:
            limits = port.limits or self._limits(port.domain, {**self._upper, **call_vars})
            require_inside(buffer, array, limits)
        with self._lock:
            self._require_open()
            self._device.write(port.memory.address, array.view(np.uint8))

    def input(self, buffer: str) -> Input:
        """An input or inout buffer, to be written part by part with little said each time.

        Every var that its domain depends on counts at its maximum.

        Raises `CallerError`: the buffer takes no input.
        """
        port = self._named(buffer, WRITTEN)
        limits = None if port.domain is None else self._limits(port.domain, self._upper)
        target = self._device.open(port.memory)

        def copy(offset: int, data: NDArray[np.uint8]) -> None:
            with self._lock:
                self._require_open()
                target.write(offset, data)

        def scatter(places: Places, width: int, data: NDArray[np.generic]) -> None:
            with self._lock:
                self._require_open()
                target.scatter(places, width, data)

        return Input(buffer, port, limits, copy, scatter)

    def read(self, buffer: str) -> NDArray[np.generic]:
        """A copy of an output or inout buffer, every var in its shape at the maximum."""
        port = self._named(buffer, READ)
        return self._bytes(port.memory).view(port.dtype).reshape(port.shape)

    def region(self, name: str) -> NDArray[np.uint8]:
        """A copy of the raw bytes of a state, or of a buffer of any kind that outlives loading."""
        for kind in ("state", "buffer"):
            memory = self._loaded.memory.get(Region(kind, name))
            if memory is not None:
                if self._remaps is not None:
                    self._remaps.require_whole(name)
                return self._bytes(memory)
        raise CallerError(f"no state or buffer `{name}`")

    def clear(self, state: str, offset: int, nbytes: int) -> None:
        """Set bytes of a state to zero, as a fresh sequence expects its own to be."""
        address = self._span(state, offset, nbytes)
        with self._lock:
            self._require_open()
            self._device.clear(address, nbytes)

    def fill(self, state: str, offset: int, data: NDArray[np.uint8]) -> None:
        """Set bytes [n] of a state to ones that no program of this session has computed."""
        address = self._span(state, offset, data.size)
        with self._lock:
            self._require_open()
            self._device.write(address, np.ascontiguousarray(data))

    def copy(self, state: str, target: int, source: int, nbytes: int) -> None:
        """Copy bytes inside a state, after the runs asked for before and ahead of those after."""
        to, at = self._span(state, target, nbytes), self._span(state, source, nbytes)
        with self._lock:
            self._require_open()
            self._device.copy(to, at, nbytes)

    def reserve(self, nbytes: int) -> Reserve:
        """Memory of the host that bytes of states can be saved to, until it is closed.

        Raises `CapacityError`: there is not as much.
        """
        with self._lock:
            self._require_open()
            memory = self._device.allocate_host(nbytes)
        return Reserve(self._device, memory, self._span, self._lock, lambda: self._closed)

    def run(self, program: str, /, **vars: int) -> None:  # noqa: A002
        """Run a program once and wait for it.

        Raises `CallerError`: there is no such program, or a var it reads is missing or out of
        range.
        """
        self.start(program, 1, (), **vars).wait()

    def repeat(
        self,
        program: str,
        times: int,
        collect: Sequence[str],
        /,
        **vars: int,  # noqa: A002
    ) -> tuple[NDArray[np.generic], ...]:
        """Run a program `times` times in one call, with nothing from the host in between.

        Returns one array [times, ...] for each output buffer in `collect`: what it held after
        each run.
        """
        return self.start(program, times, collect, **vars).wait()

    def start(
        self,
        program: str,
        times: int,
        collect: Sequence[str],
        /,
        **vars: int,  # noqa: A002
    ) -> Run:
        """As `repeat`, but what is asked of the session next does not wait for these runs to end.

        A run, a write or a read that follows is after them all the same.

        Raises `CallerError`: `times` is below 1, or what `run` raises.
        Raises `CapacityError`: the host has no memory for what is collected.
        """
        if times < 1:
            raise CallerError(f"program `{program}`: `times` is {times}, expected 1 at least")
        outputs, taps = self._sinks_of(tuple(collect), times).make()
        with self._lock:
            self._require_open()
            capture = self._program(program).capture(vars)
            pending = self._device.replay(capture, times, taps)
        return Run(program, pending, outputs, self._lock)

    def begin(self) -> int:
        """The turn of a sequence that takes the states for itself; it ends the turns before it."""
        with self._lock:
            if self._remaps is not None:
                self._remaps.restore()
            self._turn += 1
            return self._turn

    def require_turn(self, turn: int) -> None:
        """Accept the last turn that began; the states of any other are gone: a `CallerError`."""
        if turn != self._turn:
            raise CallerError(
                "another generation began and took the session's states: one goes on at a time"
            )

    def reads(self, program: str) -> tuple[str, ...]:
        """The vars a program reads, in name order; a run must give them."""
        return self._program(program).reads

    def close(self) -> None:
        """Stop the device's threads; a closed session runs nothing more."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call_vars(self, where: str, given: Mapping[str, int]) -> dict[str, int]:
        declared = self.manifest.vars
        require_declared(where, given, declared)
        return {
            name: require_value(where, name, value, declared[name]) for name, value in given.items()
        }

    def _sinks_of(self, collect: tuple[str, ...], times: int) -> Sinks:
        found = self._sinks.get((collect, times))
        if found is None:
            found = Sinks([self._named(name, READ) for name in collect], times)
            if len(self._sinks) < _MOST_SINKS:
                self._sinks[collect, times] = found
        return found

    def _program(self, name: str) -> LoadedProgram:
        loaded = self._programs.get(name)
        if loaded is None:
            known = ", ".join(f"`{program}`" for program in sorted(self._programs))
            raise CallerError(f"no program `{name}`; there are {known}")
        return loaded

    def _bytes(self, memory: Memory) -> NDArray[np.uint8]:
        with self._lock:
            self._require_open()
            return self._device.read(memory.address, memory.nbytes)

    def _require_open(self) -> None:
        if self._closed:
            raise CallerError("the session is closed")

    def _span(self, state: str, offset: int, nbytes: int) -> int:
        """Where bytes of a state lie; ones it does not have are a `CallerError`."""
        memory = self._loaded.memory.get(Region("state", state))
        if memory is None:
            raise CallerError(f"no state `{state}`")
        room = memory.nbytes if self._remaps is None else max(memory.nbytes, memory.reserved)
        if not 0 <= offset <= offset + nbytes <= room:
            raise CallerError(
                f"state `{state}` has {room} bytes: [{offset}, {offset + nbytes}) is not inside"
            )
        return memory.address + offset

    def _named(self, name: str, kinds: tuple[BufferKind, ...]) -> Port:
        port = self._ports.get(name)
        if port is None or port.kind not in kinds:
            declared = self.manifest.buffers.get(name)
            raise CallerError(
                f"no buffer `{name}`"
                if declared is None
                else f"buffer `{name}` is {declared.kind}, expected {' or '.join(kinds)}"
            )
        return port

    def _port(self, name: str) -> Port:
        buffer = self.manifest.buffers[name]
        domain = buffer.domain
        return Port(
            kind=buffer.kind,
            memory=self._loaded.memory[Region("buffer", name)],
            dtype=numpy_dtype(buffer.dtype),
            shape=extents(buffer.shape, self._upper),
            domain=domain,
            limits=None if domain is None or depends(domain) else self._limits(domain, self._upper),
        )

    def _limits(self, domain: Domain, env: Mapping[str, int]) -> Limits:
        return limits_of(domain, self.manifest, self.capacity, env)
