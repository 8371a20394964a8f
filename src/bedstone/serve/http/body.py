"""A request's body, no larger and no slower than is allowed."""

import asyncio

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest

from bedstone.serve.http.call import GoneError
from bedstone.serve.http.refusal import Refusal
from bedstone.serve.http.settings import Settings

DRAINED = 64 << 20
"""Bytes of a body that is too large which are read and dropped, so that its sender gets to read
why; a connection that is closed before is reset."""

JSON = "application/json"
PLAIN = "identity"


async def read_body(request: HttpRequest, settings: Settings) -> bytes:
    """The body of a request that says it is JSON.

    Raises `Refusal`: it is not, is packed, too large, or does not come. Raises `GoneError`: nobody
    waits.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refusal(415, f"`content-type`: expected `{JSON}`", code="content_type")
    if request.headers.get("content-encoding", PLAIN).strip().lower() != PLAIN:
        raise Refusal(415, "`content-encoding`: expected none", code="content_encoding")
    try:
        async with asyncio.timeout(settings.body_seconds):
            return await _read(request, settings.body_bytes)
    except TimeoutError:
        raise Refusal(408, f"no body within {settings.body_seconds:g} s", code="slow") from None
    except ClientDisconnect:
        raise GoneError from None


async def _read(request: HttpRequest, most: int) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > DRAINED:
            break
        if size <= most:
            chunks.append(chunk)
        else:
            chunks.clear()
    if size > most:
        raise Refusal(413, f"the body is larger than {most} bytes", code="body_too_large")
    return b"".join(chunks)
