"""A body as a request."""

from typing import TypeVar

import msgspec

from bedstone.serve.http.idle import without_idle
from bedstone.serve.http.refusal import malformed
from bedstone.spec.frozen import Frozen

BOM = b"\xef\xbb\xbf"
"""What some editors and shells put before a text."""

FAULTS = (msgspec.MsgspecError, RecursionError)

RequestT = TypeVar("RequestT", bound=Frozen)


def decoded(body: bytes, decoder: "msgspec.json.Decoder[RequestT]") -> RequestT:
    """A request's body.

    Raises `Refusal`: it is no JSON, or not of the decoder's type.
    """
    body = body.removeprefix(BOM)
    try:
        return decoder.decode(body)
    except FAULTS as error:
        refused = malformed(error)
    if refused.fault.code != "unknown_field":
        raise refused
    kind = decoder.type
    try:
        fields = without_idle(msgspec.json.decode(body), kind.__struct_fields__)
        request: RequestT = msgspec.convert(fields, kind)
    except FAULTS as error:
        raise malformed(error) from None
    return request
