"""The engine that runs requests of a session in a thread of its own."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic

from bedstone.errors import BedstoneError, CallerError, CapacityError, DeviceError
from bedstone.runtime.executor import Executor
from bedstone.serve.engine.core import Core
from bedstone.serve.engine.options import DEFAULTS, Options
from bedstone.serve.requests import Event, Limits, Request, Stats

Deliver = Callable[[Sequence[Event]], None]

_PICTURE_SECONDS = 0.05
"""How old `stats` may be while requests are open: all of these are looked at."""


class ThreadedEngine:
    """A session that many ask at once; see `bedstone.serve.requests.Engine`.

    `deliver` is called by the engine's thread, once a step with all there is to tell; `failed` by
    it as well, last of all, where the engine came to an end that nobody asked for. The session is
    the caller's to close, once this is closed.
    """

    def __init__(
        self,
        session: Executor,
        deliver: Deliver,
        options: Options = DEFAULTS,
        clock: Callable[[], float] = monotonic,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._core = Core(session, options, clock)
        self._deliver = deliver
        self._failed = failed
        self._clock = clock
        self._changed = threading.Condition()
        self._arrived: list[Request] = []
        self._cancelled: list[str] = []
        self._open: set[str] = set()
        self._most = self._core.limits.sequences + options.queue
        self._closing: float | None = None
        self._fault: str | None = None
        self._picture = self._core.stats()
        self._drawn = clock()
        self._thread = threading.Thread(target=self._run, name="bedstone-engine", daemon=True)
        self._thread.start()

    @property
    def limits(self) -> Limits:
        """What it can take."""
        return self._core.limits

    @property
    def fault(self) -> str | None:
        """What ended it, if nobody asked for that."""
        return self._fault

    def submit(self, request: Request) -> None:
        """Take a request; its events follow.

        Raises `CallerError`: it asks for what cannot be, or one of its name is open.
        Raises `CapacityError`: as many wait as may, or the engine is closing.
        Raises `DeviceError`: the device failed; nothing is answered any more.
        """
        self._core.require_possible(request)
        with self._changed:
            if self._fault is not None:
                raise DeviceError(f"the engine has stopped: {self._fault}")
            if self._closing is not None:
                raise CapacityError(f"request `{request.id}`: the engine is closing")
            if request.id in self._open:
                raise CallerError(f"request `{request.id}` is open: expected another name")
            if len(self._open) >= self._most:
                raise CapacityError(
                    f"request `{request.id}`: {len(self._open)} requests are open, as many as may "
                    f"be: {self.limits.sequences} at once and {self.limits.queue} that wait"
                )
            self._open.add(request.id)
            self._arrived.append(request)
            self._changed.notify_all()

    def cancel(self, request: str) -> None:
        """End a request at the next step; one that is over, or unknown, is left alone."""
        with self._changed:
            if request in self._open:
                self._cancelled.append(request)
                self._changed.notify_all()

    def stats(self) -> Stats:
        """What it has done and holds, a twentieth of a second ago at most."""
        return self._picture

    def close(self, grace: float) -> None:
        """Refuse what is new, give the rest `grace` seconds, cancel it, stop."""
        with self._changed:
            until = self._clock() + grace
            self._closing = until if self._closing is None else min(until, self._closing)
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # --- the thread ---

    def _run(self) -> None:
        try:
            while self._wait():
                self._turn()
            self._core.close()
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody may wait for ever
            self._stop(error)

    def _wait(self) -> bool:
        """Sleep while there is nothing to do; False: there will be nothing more."""
        with self._changed:
            while not (self._core.busy or self._arrived):
                if self._closing is not None:
                    return False
                self._changed.wait()
        return True

    def _turn(self) -> None:
        now = self._clock()
        with self._changed:
            arrived, self._arrived = self._arrived, []
            cancelled, self._cancelled = self._cancelled, []
            over = self._closing is not None and now >= self._closing
        for request in arrived:
            self._core.submit(request)
        if over:
            self._core.cancel_all()
        for name in cancelled:
            self._core.cancel(name)
        self._core.turn()
        self._tell()

    def _tell(self) -> None:
        """Hand out what there is to tell."""
        events, ended = self._core.take_events()
        now = self._clock()
        if not self._core.busy or now - self._drawn >= _PICTURE_SECONDS:
            self._picture, self._drawn = self._core.stats(), now
        if ended:
            with self._changed:
                self._open.difference_update(ended)
        if events:
            self._deliver(events)

    def _stop(self, error: Exception) -> None:
        """The end of everything: every open request is told why."""
        message = f"{type(error).__name__}: {error}" if not _is_ours(error) else str(error)
        with self._changed:
            self._fault = message
            arrived, self._arrived = self._arrived, []
        for request in arrived:
            self._core.submit(request)
        self._core.fail(message)
        with suppress(Exception):  # it may be the telling that failed
            self._tell()
        if self._closing is None:
            self._failed()


def _is_ours(error: Exception) -> bool:
    return isinstance(error, BedstoneError)
