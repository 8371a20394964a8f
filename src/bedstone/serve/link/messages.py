"""What crosses between a front and the engine's process: msgpack, one type each way."""

from collections.abc import Mapping

import msgspec

from bedstone.errors import BedstoneError, CallerError, CapacityError, DeviceError
from bedstone.serve.link.link import Ask, Guide, Sight
from bedstone.serve.link.samples import Samples
from bedstone.serve.requests import Event
from bedstone.spec.frozen import Frozen


class Ready(Frozen, tag="ready"):
    """The front listens."""


class Submit(Frozen, tag="submit"):
    """Take all of these, or none; answered by `Taken` or `Refused` of that number."""

    number: int
    asks: list[Ask]
    guide: Guide | None


class Cancel(Frozen, tag="cancel"):
    """End these requests."""

    requests: list[str]


class Look(Frozen, tag="look"):
    """Answered by `Seen` of that number."""

    number: int


class Count(Frozen, tag="count"):
    """What the front's meters hold now."""

    samples: Samples


class Taken(Frozen, tag="taken"):
    """What was submitted is under way."""

    number: int


class Refused(Frozen, tag="refused"):
    """What was submitted is not: `kind` is the error's class."""

    number: int
    kind: str
    message: str

    @staticmethod
    def of(number: int, error: Exception) -> "Refused":
        """The error as it crosses; one that nobody meant crosses without what it said."""
        kind = next((name for name, each in _KINDS.items() if isinstance(error, each)), None)
        if kind is None:
            return Refused(number, RuntimeError.__name__, "the engine's process failed")
        return Refused(number, kind, str(error))

    @property
    def error(self) -> Exception:
        """The error as it is raised again."""
        return _KINDS.get(self.kind, RuntimeError)(self.message)


class Told(Frozen, tag="told"):
    """A step's events of the front's requests."""

    events: list[Event]


class Seen(Frozen, tag="seen"):
    """What there was to see."""

    number: int
    sight: Sight


class State(Frozen, tag="state"):
    """How the server is: it takes nothing new; its device has failed; there is no more to tell."""

    draining: bool = False
    failed: bool = False
    over: bool = False


FromFront = Ready | Submit | Cancel | Look | Count
FromEngine = Taken | Refused | Told | Seen | State

FROM_FRONT: "msgspec.msgpack.Decoder[FromFront]" = msgspec.msgpack.Decoder(FromFront)
FROM_ENGINE: "msgspec.msgpack.Decoder[FromEngine]" = msgspec.msgpack.Decoder(FromEngine)
ENCODER = msgspec.msgpack.Encoder()

_KINDS: Mapping[str, type[Exception]] = {
    each.__name__: each for each in (CallerError, CapacityError, DeviceError, BedstoneError)
}
