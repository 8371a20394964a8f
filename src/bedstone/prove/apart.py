"""Work done in a forked process: a kernel that crashes there, or never ends, ends nothing else.

What the parent holds is the child's too, at no cost; the result comes back through a pipe. The
work may start threads and open devices, so the parent must have closed its own. What a kernel
prints goes to stderr, since stdout is the command's; what it starts ends with the child.
"""

import ctypes
import faulthandler
import os
import pickle
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from mmap import mmap
from typing import Any, TypeVar

from bedstone.errors import BedstoneError, DeviceError

ResultT = TypeVar("ResultT")
_LONGEST = 4096
_CHUNK = 1 << 20
_STDOUT, _STDERR = 1, 2
_PARENT_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of Linux."""


class Mark:
    """A line of text that outlives the process that wrote it: where it is."""

    def __init__(self) -> None:
        self._memory = mmap(-1, _LONGEST)

    def set(self, text: str) -> None:
        """Say where the work is."""
        data = text.encode()[: _LONGEST - 1]
        self._memory[: len(data) + 1] = data + b"\0"

    def get(self) -> str:
        """What was said last, empty where nothing was."""
        return self._memory[:].partition(b"\0")[0].decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Death:
    """How the process ended without a result, and what its mark said; `stalled` where too late."""

    how: str
    mark: str
    stalled: bool = False


def run_apart(
    work: Callable[[Mark], ResultT],
    seconds: float,
    deaths: tuple[type[BedstoneError], ...] = (),
) -> ResultT | Death:
    """What work gives that is done in a child process, or how that died.

    `work` is given the mark to set, its result must be one that pickles; `seconds` is the most it
    may take. A `BedstoneError` that it raises is raised here, unless it is one of those that count
    as `deaths`; anything else is raised as a `DeviceError`.
    """
    mark = Mark()
    ours, theirs = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    with warnings.catch_warnings():
        # other threads may idle in a parent; none of them holds what the work needs
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(ours)
        _end_with(parent)
        _serve(work, mark, theirs, deaths)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as pipe:
        data, status = _awaited(pipe, child, seconds)
    if data is None:
        return Death(f"no end within {seconds:g} s", mark.get(), stalled=True)
    result: ResultT | Death = _result(data, status, mark)
    return result


def _end_with(parent: int) -> None:
    """Have the system end this process when its parent is gone, however that ends."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _serve(
    work: Callable[[Mark], ResultT],
    mark: Mark,
    pipe: int,
    deaths: tuple[type[BedstoneError], ...],
) -> None:
    """Do the work and end the process; nothing returns from here."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(_STDERR, _STDOUT)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # a crash is an answer here, no fault to be traced
        faulthandler.disable()
        answer = _answer(work, mark, deaths)
        with open(pipe, "wb") as stream:
            stream.write(answer)
        sys.stderr.flush()
        code = 0
    finally:
        # neither the parent's exit handlers nor a kernel's get to run
        os._exit(code)


def _answer(
    work: Callable[[Mark], ResultT], mark: Mark, deaths: tuple[type[BedstoneError], ...]
) -> bytes:
    try:
        return pickle.dumps((True, work(mark)), pickle.HIGHEST_PROTOCOL)
    except deaths as error:
        return pickle.dumps((True, Death(str(error), mark.get())))
    except BedstoneError as error:
        return pickle.dumps((False, error))
    except Exception as error:  # noqa: BLE001  (whatever it is, the parent is to hear of it)
        text = "".join(traceback.format_exception(error))
        return pickle.dumps((False, DeviceError(f"the child process failed: {text}")))


def _awaited(pipe: FileIO, child: int, seconds: float) -> tuple[bytes | None, int]:
    """All that comes until the child ends, None where time is up; and how it ended.

    What it started may hold the other end of the pipe for longer.
    """
    deadline = time.monotonic() + seconds
    parts: list[bytes] = []
    ended = os.pidfd_open(child)
    try:
        while ready := _ready((pipe.fileno(), ended), deadline):
            part = pipe.read(_CHUNK) if pipe.fileno() in ready else b""
            parts.append(part)
            if not part:
                return b"".join(parts), _end(child)
        return None, _end(child, signal.SIGKILL)
    except BaseException:  # an interrupt too must leave no child behind
        _end(child, signal.SIGKILL)
        raise
    finally:
        os.close(ended)


def _ready(descriptors: tuple[int, int], deadline: float) -> list[int]:
    """Those that can be read; none where the deadline comes first."""
    ready, _, _ = select.select(descriptors, [], [], max(0.0, deadline - time.monotonic()))
    return ready


def _end(child: int, number: int = 0) -> int:
    """Send a child a signal, if any, and end all of its group; how it ended."""
    if number:
        os.kill(child, number)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    # until it is reaped its number is still its own, and its group's
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _result(data: bytes, status: int, mark: Mark) -> Any:  # noqa: ANN401  (what the work gave)
    if os.WIFSIGNALED(status):
        return Death(signal.Signals(os.WTERMSIG(status)).name, mark.get())
    try:
        good, value = pickle.loads(data)  # noqa: S301  (our own child wrote it)
    except (pickle.UnpicklingError, EOFError, ValueError):
        return Death(f"exit code {os.waitstatus_to_exitcode(status)}", mark.get())
    if good:
        return value
    raise value
