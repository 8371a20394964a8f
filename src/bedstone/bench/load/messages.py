"""What the processes of a client and the one that started them tell each other. Pure."""

from struct import Struct

import msgspec

from bedstone.bench.load.answered import Answer
from bedstone.bench.load.busy import Busy
from bedstone.bench.load.server import Server

HEAD = Struct("<Q")
"""Bytes of the message that follows."""


class Opening(msgspec.Struct, tag="opening"):
    """To a process: whom to ask, for how many clients."""

    server: Server
    clients: int


class Begin(msgspec.Struct, tag="begin"):
    """To all of them: when to begin, by the clock that they share."""

    at: float


class Ready(msgspec.Struct, tag="ready"):
    """From a process: it waits for the beginning."""


class Ended(msgspec.Struct, tag="ended"):
    """From a process: how many of its requests have ended."""

    requests: int


class Result(msgspec.Struct, tag="result"):
    """From a process, its last words."""

    answers: list[Answer]
    busy: Busy


Message = Opening | Begin | Ready | Ended | Result

_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder[Message](Message)


def emit_message(message: Message) -> bytes:
    """The message with its length before it."""
    text = _ENCODER.encode(message)
    return HEAD.pack(len(text)) + text


def parse_message(text: bytes) -> Message:
    """A message without its length."""
    return _DECODER.decode(text)
