"""Replays: launches enqueued one by one, or recorded once as a graph and launched whole.

A capture that is kept is recorded the first time it runs with the same outputs tapped; from then on
a step is one call. What it reads from the host is not in the graph: inputs are copied before it.
"""

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bedstone.errors import DeviceError
from bedstone.runtime.cuda.driver import CudaError, Driver
from bedstone.runtime.cuda.launches import LaunchList, Target
from bedstone.runtime.cuda.ring import Reading, Ring, TapLaunches, plan_row, tap_kernel
from bedstone.runtime.device import Pending, Tap
from bedstone.runtime.image import Capture

# libraries that watch a process's recordings break when two of its threads record at once
_RECORDING = threading.Lock()

_Taps = tuple[tuple[int, int], ...]
"""Source and bytes of each tap: what a recording of it depends on."""


@dataclass(slots=True, eq=False)
class _Prepared:
    """A capture's launches, and the graphs recorded of the assignment numbered `edition`."""

    launches: LaunchList
    edition: int = -1
    graphs: dict[tuple[Ring, _Taps], int] = field(default_factory=dict)
    tapping: dict[tuple[Ring, _Taps], TapLaunches] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A replay of more steps than a ring has rows."""

    readings: tuple[Reading, ...]

    def wait(self) -> None:
        """Wait for one part after another."""
        for reading in self.readings:
            reading.wait()


class Steps:
    """Everything a device replays, on one stream. `targets` are what handles stand for."""

    def __init__(self, driver: Driver, stream: int, targets: Sequence[Target]) -> None:
        self._driver = driver
        self._stream = stream
        self._targets = targets
        self._tapping = driver.load(tap_kernel())
        self._rings: list[Ring] = []
        self._graphs: list[_Prepared] = []

    def replay(self, capture: Capture, repeat: int, taps: Sequence[Tap]) -> Pending:
        """Enqueue `repeat` steps; their outputs are read when the answer is waited for."""
        ring = self._ring(taps)
        step = self._step(capture, ring, taps)
        if repeat <= ring.rows:
            return self._enqueue(ring, step, repeat, taps)
        readings: list[Reading] = []
        for start in range(0, repeat, ring.rows):
            count = min(ring.rows, repeat - start)
            shifted = [Tap(t.source, t.sink + start * t.nbytes, t.nbytes) for t in taps]
            readings.append(self._enqueue(ring, step, count, shifted))
        return _Parts(tuple(readings))

    def close(self) -> None:
        """Let graphs and rings go."""
        for prepared in self._graphs:
            self._end_graphs(prepared)
        for ring in self._rings:
            with contextlib.suppress(CudaError):  # after a fault every call answers with it
                ring.close()
        with contextlib.suppress(CudaError):
            self._driver.unload(self._tapping)

    def _enqueue(
        self, ring: Ring, step: Callable[[], None], count: int, taps: Sequence[Tap]
    ) -> Reading:
        reading = ring.begin(count, taps)
        done = 0
        try:
            while done < count:
                step()
                done += 1
        except BaseException:
            ring.abandon(reading, done)
            raise
        ring.enqueued(reading)
        return reading

    def _step(self, capture: Capture, ring: Ring, taps: Sequence[Tap]) -> Callable[[], None]:
        """What enqueues one step."""
        prepared = self._prepared(capture)
        key = (ring, tuple((tap.source, tap.nbytes) for tap in taps))
        if key not in prepared.tapping:
            prepared.tapping[key] = ring.tap_launches(taps)
        tapping = prepared.tapping[key]
        if not capture.kept:
            return lambda: self._each(prepared.launches, capture.edition, tapping)
        if key not in prepared.graphs:
            prepared.graphs[key] = self._recorded(prepared.launches, capture.edition, tapping)
        graph = prepared.graphs[key]
        return lambda: self._driver.launch_graph(graph, self._stream)

    def _prepared(self, capture: Capture) -> _Prepared:
        prepared = capture.prepared
        if not isinstance(prepared, _Prepared):
            launch = self._driver.launch
            launches = LaunchList(capture, self._targets, self._stream, launch)
            capture.prepared = prepared = _Prepared(launches)
            if capture.kept:
                self._graphs.append(prepared)
        if prepared.edition != capture.edition:
            self._end_graphs(prepared)
            prepared.edition = capture.edition
        return prepared

    def _each(self, launches: LaunchList, edition: int, tapping: TapLaunches) -> None:
        launches.enqueue(edition)
        for config, function, params in tapping.calls:
            status = self._driver.launch(config, function, params, None)
            if status:
                raise DeviceError(f"outputs could not be read back: CUDA error {status}")

    def _recorded(self, launches: LaunchList, edition: int, tapping: TapLaunches) -> int:
        with _RECORDING:
            self._driver.begin(self._stream)
            try:
                self._each(launches, edition, tapping)
            except BaseException:
                with contextlib.suppress(CudaError):  # the recording may be broken already
                    self._driver.drop_graph(self._driver.end(self._stream))
                raise
            graph = self._driver.end(self._stream)
        return self._driver.instantiate(graph, self._stream)

    def _ring(self, taps: Sequence[Tap]) -> Ring:
        """The latest ring, or a new one where its rows are too short."""
        nbytes = plan_row(taps).nbytes
        if not self._rings or self._rings[-1].stride < nbytes:
            ring = Ring(self._driver, self._tapping, self._stream, nbytes)
            self._rings.append(ring)
        return self._rings[-1]

    def _end_graphs(self, prepared: _Prepared) -> None:
        for graph in prepared.graphs.values():
            with contextlib.suppress(CudaError):  # after a fault every call answers with it
                self._driver.end_graph(graph)
        prepared.graphs.clear()
