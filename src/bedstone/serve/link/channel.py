"""Frames over a local socket: four bytes of length, then the message."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from struct import Struct
from typing import cast

from bedstone.errors import BedstoneError

HEAD = Struct("<I")
MOST_FRAME = 1 << 28
"""Bytes of a message: more is no message of ours."""


class ClosedError(BedstoneError):
    """The other side has closed the socket."""


class Channel(asyncio.Protocol):
    """Sends frames, and hands on those that come; `lost` is called once, at its end."""

    def __init__(self, take: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self._take = take
        self._lost = lost
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    async def run(self, made: socket.socket) -> None:
        """Begin over a connected socket, which it owns from then on."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self, sock=made)

    @property
    def waiting(self) -> int:
        """Bytes that the other side has not taken."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def send(self, message: bytes) -> None:
        """Send a frame; where the other side has gone, nowhere."""
        if self._transport is not None:
            self._transport.write(HEAD.pack(len(message)) + message)

    def abort(self) -> None:
        """Close it without sending what waits."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As `asyncio.Protocol` says."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """As `asyncio.Protocol` says."""
        self._received += data
        for frame in self._frames():
            self._take(frame)

    def connection_lost(self, _error: Exception | None) -> None:
        """As `asyncio.Protocol` says."""
        self._transport = None
        self._lost()

    def _frames(self) -> Iterator[bytes]:
        """Those that have come whole."""
        received, at = self._received, 0
        while len(received) - at >= HEAD.size:
            size = HEAD.unpack_from(received, at)[0]
            if size > MOST_FRAME:
                self.abort()
                break
            end = at + HEAD.size + size
            if len(received) < end:
                break
            yield bytes(received[at + HEAD.size : end])
            at = end
        del received[:at]


def receive_frame(made: socket.socket) -> bytes:
    """The next frame of a socket that blocks.

    Raises `ClosedError`: there is none.
    """
    return _receive(made, HEAD.unpack(_receive(made, HEAD.size))[0])


def _receive(made: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        data = made.recv(size - len(received))
        if not data:
            raise ClosedError("the other side has closed the socket")
        received += data
    return bytes(received)
