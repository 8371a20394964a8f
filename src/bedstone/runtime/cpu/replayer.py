"""The native replayer: one call runs a launch list over the threads of a pool."""

import ctypes
import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from bedstone.errors import CallerError, DeviceError
from bedstone.runtime.cpu.cores import usable_cores
from bedstone.runtime.device import Tap

_SOURCES = tuple(Path(__file__).with_name(name) for name in ("replay.c", "ahead.h", "launch.h"))
_DIGITS = 32
_FLAGS = ("-O2", "-pthread")
_FAILURES = {
    1: "the process forked after its session was loaded; load the session in the child",
    2: "no memory for the threads' shared blocks",
}
# about 30 microseconds of pause instructions: longer than a step's work between two replays
_SPINS = 2000
_SPINS_WHEN_CROWDED = 50
_MAX_THREADS = 1024


def build_replayer(cache: Path) -> Path:
    """The compiled replayer, from `cache` where it lies there, whatever compiler made it.

    Raises `TargetError`: it does not, and the machine has no C compiler.
    """
    texts = (source.read_text() for source in _SOURCES)
    what = "\0".join((*_FLAGS, os.uname().machine, *texts))
    built = cache / f"replay-{hashlib.sha256(what.encode()).hexdigest()[:_DIGITS]}.so"
    if not built.exists():
        # neither is needed where the object is there: they are slow to load, a compiler to ask
        from bedstone.target.cache import write_whole  # noqa: PLC0415
        from bedstone.target.toolchain import Unit, compile_unit, find_compiler  # noqa: PLC0415

        unit = Unit(_SOURCES[:1], _FLAGS)
        made = compile_unit(unit, cache=cache, compiler=find_compiler())
        write_whole(built, made.read_bytes())
    return built


class Replayer:
    """A pool of threads that runs launch lists, one at a time.

    The caller's thread is one of them. `threads` None is one thread a physical core.
    """

    def __init__(self, library: Path, threads: int | None = None) -> None:
        cores = usable_cores()
        count = len(cores) if threads is None else threads
        if not 1 <= count <= _MAX_THREADS:
            raise CallerError(f"`threads` is {count}: expected 1 to {_MAX_THREADS}")
        self.threads = count
        self._lock = threading.Lock()
        self._native = _load(library)
        spins = _SPINS if count <= len(cores) else _SPINS_WHEN_CROWDED
        pins = (ctypes.c_int32 * count)(*_pins(cores, count))
        self._pool: int | None = self._native.bs_pool_open(count, pins, spins)
        if not self._pool:
            raise DeviceError(f"the system refused {count} threads for the replayer")

    @property
    def along(self) -> int:
        """The function that says what the thread at hand will read: for a module's `bs_along`."""
        return ctypes.cast(self._native.bs_along, ctypes.c_void_p).value or 0

    def ask(self, entry: int, reads: int) -> None:
        """Ask the function at address `reads` what the kernel at `entry` reads, ahead of it."""
        with self._lock:
            self._native.bs_pool_ask(self._open_pool(), entry, reads)

    def reserve(self, shared_bytes: int) -> None:
        """Give each thread at least `shared_bytes` of memory for its blocks to share."""
        with self._lock:
            _check(self._native.bs_pool_reserve(self._open_pool(), shared_bytes))

    def replay(self, launches: int, count: int, repeat: int, taps: Sequence[Tap]) -> None:
        """Run `count` launches at address `launches`, `repeat` times; the GIL is released."""
        words = (ctypes.c_uint64 * (3 * len(taps)))(
            *(word for tap in taps for word in (tap.source, tap.sink, tap.nbytes))
        )
        with self._lock:
            pool = self._open_pool()
            _check(self._native.bs_replay(pool, launches, count, repeat, words, len(taps)))

    def close(self) -> None:
        """Stop the threads."""
        with self._lock:
            if self._pool:
                self._native.bs_pool_close(self._pool)
            self._pool = None

    def _open_pool(self) -> int:
        if not self._pool:
            raise CallerError("the session is closed")
        return self._pool


def _pins(cores: tuple[int, ...], count: int) -> tuple[int, ...]:
    """A core for each thread of a pool that takes them all; -1 leaves a thread to the scheduler.

    Smaller pools are not pinned: two of them would share the first cores and leave the rest idle.
    """
    return cores if count == len(cores) else (-1,) * count


def _check(status: int) -> None:
    if status:
        raise DeviceError(_FAILURES[status])


def _load(library: Path) -> ctypes.CDLL:
    try:
        native = ctypes.CDLL(str(library))
    except OSError as error:
        # a cache on a disk that runs no code, or a file that was cut short
        raise DeviceError(f"the replayer `{library}` does not load: {error}") from error
    word, address = ctypes.c_uint64, ctypes.c_void_p
    native.bs_pool_open.argtypes = [ctypes.c_uint32, address, ctypes.c_uint32]
    native.bs_pool_open.restype = address
    native.bs_pool_reserve.argtypes = [address, word]
    native.bs_pool_ask.argtypes = [address, address, address]
    native.bs_pool_ask.restype = None
    native.bs_replay.argtypes = [address, address, word, word, address, word]
    native.bs_pool_close.argtypes = [address]
    native.bs_pool_close.restype = None
    return native
