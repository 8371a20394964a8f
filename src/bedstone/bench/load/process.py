"""A client's process: `python -m bedstone.bench.load.process QUEUE`, a file that was inherited.

Messages come on stdin and go out on stdout. It ends with the process that started it, whichever way
that ends.
"""

import asyncio
import os
import sys
import threading
from time import perf_counter
from typing import BinaryIO

from bedstone.bench.load.client import Load
from bedstone.bench.load.messages import (
    HEAD,
    Begin,
    Ended,
    Message,
    Opening,
    Ready,
    Result,
    emit_message,
    parse_message,
)
from bedstone.bench.load.queue import Queue

TELL_SECONDS = 0.1
"""How often it tells how far it is."""


class _Told:
    """What was told of the requests that have ended, and when."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._last = 0.0

    def done(self, requests: int) -> None:
        """Tell it, unless it was told just now."""
        if (now := perf_counter()) - self._last > TELL_SECONDS:
            self._last = now
            self.tell(Ended(requests))

    def tell(self, message: Message) -> None:
        """Send a message."""
        self._out.write(emit_message(message))
        self._out.flush()


def main(queue: int) -> None:
    """Ask what is queued when told to, and tell the answers."""
    told = _Told(sys.stdout.buffer)
    opening = _heard(sys.stdin.buffer)
    if not isinstance(opening, Opening):
        return
    load = Load(opening.server, Queue(queue), told.done)
    told.tell(Ready())
    begin = _heard(sys.stdin.buffer)
    if not isinstance(begin, Begin):
        return
    threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    told.tell(Result(*asyncio.run(load.run(opening.clients, begin.at))))
    # that thread still reads, and would hold up the interpreter's end
    os._exit(0)


def _heard(source: BinaryIO) -> Message | None:
    """The next message; None where there is nobody left to send one."""
    head = source.read(HEAD.size)
    return parse_message(source.read(HEAD.unpack(head)[0])) if len(head) == HEAD.size else None


def _end_with(source: BinaryIO) -> None:
    """End at once when the other end of stdin is closed: nobody wants the answers."""
    source.read()
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
