"""What is not answered, and why: a status and the body that OpenAI's clients read."""

import re
from collections.abc import Mapping

import msgspec

from bedstone.errors import BedstoneError, CapacityError, DeviceError
from bedstone.serve.http.replies import Failure, Fault

RETRY = {"retry-after": "1"}
HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    429: RETRY,
    503: RETRY,
}
"""What clients act on, by status: when to come again is told where that may help."""

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
EXPECTED: Mapping[str, str] = {
    "messages[].role": ", expected `system`, `developer`, `user`, `assistant` or `tool`",
    "messages[].content[].type": ", expected `text`: pictures, sound and files are not read",
    "response_format.type": ", expected `text`, `json_object` or `json_schema`",
    "tool_choice": ", expected `none`, `auto`, `required`, or a function by its name",
    "tool_choice.type": ", expected `function`",
    "tools[].type": ", expected `function`",
}
"""What a field of few values may be."""


class Refusal(Exception):  # noqa: N818 - not every one is an error of ours
    """An answer that is no success. `param` is the field at fault, `code` what programs read."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {**HEADERS.get(status, {}), **(headers or {})}
        told = param and param[:LONGEST]
        self.fault = Fault(message[:LONGEST], KINDS.get(status, INVALID), told, code)

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


def malformed(error: Exception) -> Refusal:
    """A body that the decoder did not take, with the field that is wrong."""
    if isinstance(error, msgspec.ValidationError):
        message, _, place = str(error).partition(" - at ")
        return _located(message, place)
    if isinstance(error, RecursionError):
        return bad("the body is nested too deeply", code="invalid_json")
    return bad(f"the body is no JSON: {error}", code="invalid_json")


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
    if message.startswith(("Invalid enum value", "Invalid value")):
        told += EXPECTED.get(re.sub(r"\[\d+\]", "[]", path), "")
    return bad(f"`{path}`: {told}" if path else told, path or None, "invalid_value")
