"""Messages over a socket: a JSON object each, after its length in four bytes."""

import json
import socket
from time import monotonic
from typing import Any

LONGEST = 1 << 20
"""Bytes of a message."""

Message = dict[str, Any]


class WireError(Exception):
    """The other end is gone, or sent what is no message."""


def send(to: socket.socket, message: Message) -> None:
    """Send one message."""
    data = json.dumps(message).encode()
    try:
        to.sendall(len(data).to_bytes(4, "little") + data)
    except OSError as error:
        raise WireError(f"the other end is gone: {error.strerror or error}") from error


def receive(source: socket.socket, deadline: float | None = None) -> Message:
    """The next message.

    Args:
        source: Where from.
        deadline: The monotonic time by which all of it must be there; None waits on.

    Returns:
        The message.

    Raises:
        WireError: the other end is gone, or sent something else.
    """
    length = int.from_bytes(_exactly(source, 4, deadline), "little")
    if length > LONGEST:
        raise WireError(f"a message of {length} bytes, expected at most {LONGEST}")
    try:
        message = json.loads(_exactly(source, length, deadline))
    except ValueError as error:
        raise WireError(f"not a message: {error}") from error
    if not isinstance(message, dict):
        raise WireError("not a message: expected an object")
    return message


def _exactly(source: socket.socket, count: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < count:
        # a timeout of 0 would mean "do not block at all"
        source.settimeout(None if deadline is None else max(deadline - monotonic(), 1e-6))
        try:
            part = source.recv(count - len(data))
        except TimeoutError:
            raise
        except OSError as error:
            raise WireError(f"the other end is gone: {error.strerror or error}") from error
        if not part:
            raise WireError("the other end is gone")
        data += part
    return bytes(data)
