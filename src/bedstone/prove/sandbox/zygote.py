"""A process with PyTorch loaded that forks a child for each candidate, in milliseconds.

It never runs a candidate's code itself, starts no threads and touches no device, so each fork is
as good as a new process. It ends, with its children, when the parent's end of its socket closes.
"""

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

from bedstone.errors import DeviceError
from bedstone.prove.sandbox.wire import Message, WireError, receive, send

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from bedstone.prove.sandbox.zygote import serve; serve(int(sys.argv[2]))"
)


_PR_SET_CHILD_SUBREAPER = 36
_CHILDREN = Path("/proc/thread-self/children")


class Zygote:
    """The parent's handle of the process that forks children.

    `cache` is where they keep what they compile from C; None keeps nothing.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self.cache = cache
        ours, theirs = socket.socketpair()
        self._socket = ours
        arguments = [sys.executable, "-c", _START, json.dumps(sys.path), str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  (our own interpreter and code)
                arguments, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL
            )
        self._ask({"ready": True})

    def spawn(self, channel: socket.socket, arena: int, log: int) -> int:
        """Fork a child that serves `channel` over the memory `arena`; its output goes to `log`."""
        socket.send_fds(self._socket, [b"f"], [channel.fileno(), arena, log])
        child: int = receive(self._socket)["pid"]
        return child

    def end(self, child: int) -> int:
        """Kill a child and all it started; how it ended, as `waitpid` says."""
        # the child is not reaped before we ask, so its number is still its own
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status: int = self._ask({"reap": child})["status"]
        return status

    def _ask(self, message: Message) -> Message:
        try:
            self._socket.sendall(b"m")
            send(self._socket, message)
            return receive(self._socket)
        except (WireError, OSError) as error:
            raise DeviceError(f"the process that forks candidates has ended: {error}") from error

    def close(self) -> None:
        """End the process and every child it still has."""
        self._socket.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def serve(descriptor: int) -> None:
    """Fork and reap as asked on the socket `descriptor`, until it closes."""
    from bedstone.prove.sandbox import child  # noqa: PLC0415  (loads PyTorch, once for all forks)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what outlives a child, wherever it has gone, becomes ours to end
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    asked = socket.socket(fileno=descriptor)
    children: set[int] = set()
    while True:
        kind, descriptors, _, _ = socket.recv_fds(asked, 1, 3)
        if not kind:
            break
        if kind == b"f":
            pid = os.fork()
            if pid == 0:
                asked.close()
                child.run(*descriptors)
            children.add(pid)
            for each in descriptors:
                os.close(each)
            send(asked, {"pid": pid})
        else:
            send(asked, _answer(receive(asked), children))
    for each in children:
        with suppress(ProcessLookupError):
            os.killpg(each, signal.SIGKILL)
    _end_strays(set())


def _answer(message: Message, children: set[int]) -> Message:
    if "reap" in message:
        children.discard(message["reap"])
        status = os.waitpid(message["reap"], 0)[1]
        _end_strays(children)
        return {"status": status}
    return {"ready": True}


def _end_strays(children: set[int]) -> None:
    """Kill what children that have ended left running, and what that leaves in turn.

    A system that does not list a process's children keeps them.
    """
    with suppress(FileNotFoundError):
        while strays := set(map(int, _CHILDREN.read_text().split())) - children:
            for each in strays:
                os.kill(each, signal.SIGKILL)
            for each in strays:
                os.waitpid(each, 0)
