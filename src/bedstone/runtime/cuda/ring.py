"""What steps leave behind, read without stopping them.

A *tap* of a step is a launch behind its own: it copies the outputs that somebody asked for into the
next row of a ring in page-locked memory. It is part of the step's graph, so that steps follow each
other on the device while the host reads the rows of those before.
"""

import ctypes
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np

from bedstone.errors import DeviceError
from bedstone.runtime.cuda.driver import Driver
from bedstone.runtime.cuda.launches import CONFIG
from bedstone.runtime.device import Tap

ENTRY = "bedstone_tap"
_MOST_TAPS = 8
_THREADS = 256
_RING_BYTES = 2**20
_LEAST_ROWS = 64
_ALIGN = 16
_PARAMS = np.dtype(
    [
        ("ring", "<u8"),
        ("counter", "<u8"),
        ("stride", "<u4"),
        ("rows", "<u4"),
        ("count", "<u4"),
        ("advance", "<u4"),
        ("taps", [("source", "<u8"), ("offset", "<u4"), ("words", "<u4")], _MOST_TAPS),
    ]
)


def tap_kernel() -> bytes:
    """The kernel that copies outputs into the ring, as PTX text."""
    return files("bedstone.runtime.cuda").joinpath("tap.ptx").read_bytes()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each tap lies in a row: offsets in bytes, and the row's own bytes."""

    offsets: tuple[int, ...]
    nbytes: int


def plan_row(taps: Sequence[Tap]) -> Layout:
    """Taps one after another; whole words are copied, so each takes a multiple of them."""
    offsets: list[int] = []
    end = 0
    for tap in taps:
        offsets.append(end)
        end += -(-tap.nbytes // _ALIGN) * _ALIGN
    return Layout(tuple(offsets), end)


@dataclass(slots=True, eq=False)
class Reading:
    """Rows of a ring that a replay fills, until they have been read."""

    ring: "Ring"
    first: int
    repeat: int
    taps: tuple[Tap, ...]
    event: int
    kept: list[bytes] = field(default_factory=list)
    over: bool = False

    def wait(self) -> None:
        """Copy the rows to the taps' sinks once they are filled."""
        self.ring.settle(self)
        pieces = iter(self.kept)
        for row in range(self.repeat):
            for tap in self.taps:
                ctypes.memmove(tap.sink + row * tap.nbytes, next(pieces), tap.nbytes)
        self.kept = []
        self.taps = ()


class Ring:
    """Rows of `least` bytes or more, and the replays whose rows are in it.

    `module` is the tap kernel's, as the driver loaded it.
    """

    def __init__(self, driver: Driver, module: int, stream: int, least: int) -> None:
        function = driver.function(module, ENTRY)
        if function is None:
            raise DeviceError(f"the driver finds no `{ENTRY}` in the kernel that reads outputs")
        self._driver = driver
        self._function = function
        self._stream = stream
        self.stride = 1 << max(least - 1, _ALIGN).bit_length()
        self.rows = max(_LEAST_ROWS, _RING_BYTES // self.stride)
        self._address = driver.alloc_host(self.stride * self.rows)
        self._counter = driver.alloc(_ALIGN)
        driver.zero(self._counter, _ALIGN, stream)
        self._begun = 0
        self._readings: deque[Reading] = deque()
        self._events: list[int] = []

    def tap_launches(self, taps: Sequence[Tap]) -> "TapLaunches":
        """What copies the taps behind a step."""
        return TapLaunches(self._function, self._stream, tuple(self._params(taps)))

    def begin(self, repeat: int, taps: Sequence[Tap]) -> Reading:
        """Claim rows for a replay about to be enqueued, `rows` at most."""
        rows = repeat if taps else 0
        while self._readings and self._begun - self._readings[0].first + rows > self.rows:
            self.settle(self._readings[0])
        event = self._events.pop() if self._events else self._driver.event()
        reading = Reading(self, self._begun, repeat, tuple(taps), event)
        self._begun += rows
        self._readings.append(reading)
        return reading

    def enqueued(self, reading: Reading) -> None:
        """Mark where the replay ends."""
        self._driver.record(reading.event, self._stream)

    def abandon(self, reading: Reading, tapped: int) -> None:
        """Forget the latest replay, which broke off after `tapped` of its steps."""
        self._begun = reading.first + tapped
        self._forget(reading)

    def settle(self, reading: Reading) -> None:
        """Wait for a replay and take its rows out of the ring."""
        if reading.over:
            return
        self._driver.wait(reading.event)
        layout = plan_row(reading.taps)
        for row in range(reading.first, reading.first + reading.repeat * bool(reading.taps)):
            at = self._address + row % self.rows * self.stride
            for tap, offset in zip(reading.taps, layout.offsets, strict=True):
                reading.kept.append(ctypes.string_at(at + offset, tap.nbytes))
        self._forget(reading)

    def close(self) -> None:
        """Let memory and marks go."""
        for event in [*self._events, *(reading.event for reading in self._readings)]:
            self._driver.end_event(event)
        self._driver.free(self._counter)
        self._driver.free_host(self._address)

    def _forget(self, reading: Reading) -> None:
        reading.over = True
        self._readings.remove(reading)
        self._events.append(reading.event)

    def _params(self, taps: Sequence[Tap]) -> Iterator["np.ndarray[tuple[int], np.dtype[np.void]]"]:
        layout = plan_row(taps)
        placed = list(zip(taps, layout.offsets, strict=True))
        for start in range(0, len(placed), _MOST_TAPS):
            some = placed[start : start + _MOST_TAPS]
            params = np.zeros(1, _PARAMS)
            params["ring"], params["counter"] = self._address, self._counter
            params["stride"], params["rows"] = self.stride, self.rows
            params["count"] = len(some)
            params["advance"] = start + _MOST_TAPS >= len(placed)
            for index, (tap, offset) in enumerate(some):
                params["taps"][0, index] = tap.source, offset, -(-tap.nbytes // 4)
            yield params


class TapLaunches:
    """Launches of the tap kernel, laid out once.

    `calls` are the configuration, the function and the parameters of each, by address.
    """

    def __init__(
        self,
        function: int,
        stream: int,
        params: tuple["np.ndarray[tuple[int], np.dtype[np.void]]", ...],
    ) -> None:
        self._params = params
        self._pointers = np.array([[held.ctypes.data] for held in params], np.uint64)
        self._config = np.zeros(1, CONFIG)
        self._config["grid"], self._config["block"] = (1, 1, 1), (_THREADS, 1, 1)
        self._config["stream"] = stream
        self.calls = tuple(
            (self._config.ctypes.data, function, self._pointers[row].ctypes.data)
            for row in range(len(params))
        )
