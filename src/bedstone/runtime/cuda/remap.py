"""Chunks on their way from some addresses to others, while the device goes on."""

import contextlib
import threading
from collections.abc import Sequence

from bedstone.errors import DeviceError
from bedstone.runtime.cuda.driver import CudaError, Driver
from bedstone.runtime.cuda.states import States
from bedstone.runtime.memory import runs


class Remap:
    """A thread that moves chunks once a stream is through with what it has by now.

    Work that is enqueued later runs meanwhile: it may touch neither of the addresses.
    """

    def __init__(
        self,
        driver: Driver,
        states: States,
        moves: Sequence[tuple[int, int]],
        chunk: int,
        stream: int,
    ) -> None:
        self._driver = driver
        self._states = states
        self._moves = moves
        self._chunk = chunk
        self._stream = stream
        self._failure: CudaError | None = None
        self._landed = False
        self._before = driver.event()
        driver.record(self._before, stream)
        self._thread = threading.Thread(target=self._move, name="bedstone-remap", daemon=True)
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether every chunk is where it goes."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Return once every chunk is where it goes, and is zero to what is enqueued from then on.

        Raises `DeviceError`: the driver refused.
        """
        self._thread.join()
        if not self._landed:
            self._landed = True
            self._driver.end_event(self._before)
            self._zero()
        if self._failure is not None:
            raise DeviceError(f"memory did not go from state to state: {self._failure}")

    def close(self) -> None:
        """Return once nothing is under way, whatever came of it."""
        with contextlib.suppress(DeviceError):
            self.wait()

    def _zero(self) -> None:
        targets = () if self._failure else (target for _, target in self._moves)
        for start, stop in runs(targets, self._chunk):
            self._driver.zero(start, stop - start, self._stream)

    def _move(self) -> None:
        try:
            self._driver.enter()
            self._driver.wait(self._before)
            self._states.move(self._moves, self._chunk)
        except CudaError as error:
            self._failure = error
