"""What is not answered, and why: a status and the body that OpenAI's clients read."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from bedstone.errors import BedstoneError, CapacityError, DeviceError
from bedstone.serve.http.replies import Failure, Fault

RETRY_SECONDS = 1

LONGEST = 1000
"""Characters of a message and of a field's name: both may hold what the client sent."""
INVALID = "invalid_request_error"
DEVICE = "device"
"""The code where the engine's device failed."""
KINDS: Mapping[int, str] = {
    401: "authentication_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
    504: "server_error",
}
"""The `type` of an error by its status; any other is the client's request."""

RequestT = TypeVar("RequestT")


class Refusal(Exception):  # noqa: N818 - not every one is an error of ours
    """An answer that is no success. `param` is the field at fault, `code` what programs read."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        told = param and param[:LONGEST]
        self.fault = Fault(message[:LONGEST], KINDS.get(status, INVALID), told, code)

    @property
    def headers(self) -> dict[str, str]:
        """When to come again, where coming again may help."""
        return {"retry-after": str(RETRY_SECONDS)} if self.status in {429, 503} else {}

    @property
    def body(self) -> bytes:
        """The JSON of it."""
        return msgspec.json.encode(Failure(self.fault))


def refusal(error: BedstoneError) -> Refusal:
    """An error of the engine or of what it stands on, as a client is told."""
    if isinstance(error, CapacityError):
        return Refusal(429, str(error), code="queue_full")
    if isinstance(error, DeviceError):
        return Refusal(500, str(error), code=DEVICE)
    return Refusal(400, str(error))


def bad(message: str, param: str | None = None, code: str | None = None) -> Refusal:
    """The client's request is at fault."""
    return Refusal(400, message, param=param, code=code)


def decoded(body: bytes, decoder: "msgspec.json.Decoder[RequestT]") -> RequestT:
    """A request's body.

    Raises `Refusal`: it is no JSON, or not of the decoder's type.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        raise _located(message, place) from None
    except msgspec.DecodeError as error:
        raise bad(f"the body is no JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise bad("the body is nested too deeply", code="invalid_json") from None


def _located(message: str, place: str) -> Refusal:
    """A message of the decoder, with the field it is about."""
    path = place.strip("`").removeprefix("$").removeprefix(".")
    if message.startswith("Object contains unknown field"):
        field = message.rsplit("`")[-2]
        path = f"{path}.{field}" if path else field
        return bad(f"unknown field `{path}`", path, "unknown_field")
    if message.startswith("Object missing required field"):
        field = message.rsplit("`")[-2]
        path = f"{path}.{field}" if path else field
        return bad(f"`{path}` is missing", path, "missing_field")
    told = message[:1].lower() + message[1:]
    return bad(f"`{path}`: {told}" if path else told, path or None, "invalid_value")
