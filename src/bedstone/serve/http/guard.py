"""Who may come in, and what every answer that is no success looks like."""

import logging
import re
from collections.abc import Mapping
from secrets import token_hex

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bedstone.errors import BedstoneError
from bedstone.serve.http.call import GoneError
from bedstone.serve.http.front import Front
from bedstone.serve.http.nowhere import nowhere
from bedstone.serve.http.refusal import DEVICE, Refusal, refusal
from bedstone.serve.http.settings import opens

OPEN = frozenset({"/", "/health", "/openapi.json"})
"""Paths that need no key: they tell nothing of what is served to whom."""

MODELS = "/v1/models/"

GONE = 499
"""What is counted where a client left; nobody reads it."""

LOG = logging.getLogger("bedstone.serve")
REQUESTS = logging.getLogger("bedstone.serve.requests")

REQUEST_ID = "x-request-id"
FIT = re.compile(r"[\w.:\-]{1,128}", re.ASCII)
"""What a client may call its request; any other gets a name of ours."""

SHOWN = 200
"""Characters of a path in a log."""

Headers = Mapping[str, str]


class Guard:
    """Lets requests of hosts and keys that are known through, and counts what becomes of them."""

    def __init__(self, app: ASGIApp, front: Front, routes: frozenset[str]) -> None:
        self._app = app
        self._front = front
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope, clock = _by_path(scope), self._front.clock
        reply, began = _Reply(send, _request_id(scope)), clock()
        try:
            await self._answer(scope, receive, reply)
        finally:
            route = self._route(scope["path"])
            self._front.meters.responses.labels(route, str(reply.status)).inc()
            _log(scope, reply, clock() - began)

    async def _answer(self, scope: Scope, receive: Receive, reply: "_Reply") -> None:
        try:
            self._require_welcome(scope)
            # a path or method that is not known is an error to catch only inside an application
            await self._app({**scope, "app": self._app}, receive, reply.send)
        except GoneError:
            return
        except HTTPException as error:
            await reply.refuse(nowhere(scope["method"], scope["path"], error, self._routes))
        except Refusal as error:
            if error.fault.code == DEVICE and not self._front.failed:
                # an engine whose device failed answers nothing any more
                self._front.failed = True
                LOG.critical("the device failed: %s", error.fault.message)
            await reply.refuse(error)
        except BedstoneError as error:
            await reply.refuse(refusal(error))
        except Exception:  # whatever fails, the client is told and the server goes on
            LOG.exception("%s %s failed: %s", scope["method"], _target(scope), reply.id)
            await reply.refuse(Refusal(500, "the server failed", code="internal"))

    def _route(self, path: str) -> str:
        """What a path is counted as: those that clients make up are one."""
        if path.startswith(MODELS):
            return f"{MODELS}{{model}}"
        return path if path in self._routes else "other"

    def _require_welcome(self, scope: Scope) -> None:
        settings = self._front.settings
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if headers.keys() >= {"content-length", "transfer-encoding"}:
            # whoever stands in front of us may have read the other one
            told = "`content-length` and `transfer-encoding`: expected one of them"
            raise Refusal(400, told, code="framing", headers={"connection": "close"})
        if settings.hosts is not None and _host(headers) not in settings.hosts:
            told = f"`host`: `{_host(headers)[:100]}` is not served by a server without a key"
            raise Refusal(403, told, code="host")
        if scope["path"] not in OPEN and settings.keys:
            _require_key(headers, settings.keys)
        if self._front.draining and scope["method"] == "POST":
            raise Refusal(503, "the server is shutting down", code="shutting_down")


class _Reply:
    """What has been sent so far."""

    def __init__(self, send: Send, name: str) -> None:
        self.status = GONE
        self.id = name
        self._begun = False
        self._send = send

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status, self._begun = message["status"], True
            named = (REQUEST_ID.encode(), self.id.encode())
            message = {**message, "headers": [*message["headers"], named]}
        await self._send(message)

    async def refuse(self, error: Refusal) -> None:
        """Send an error, where nothing was sent; what has begun is only broken off."""
        if self._begun:
            return
        headers = {"content-type": "application/json", **error.headers}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        raw.append((b"content-length", str(len(error.body)).encode()))
        start = {"type": "http.response.start", "status": error.status, "headers": raw}
        await self.send(start)
        await self.send({"type": "http.response.body", "body": error.body})


def _log(scope: Scope, reply: _Reply, seconds: float) -> None:
    if REQUESTS.isEnabledFor(logging.INFO):
        client = (scope.get("client") or ("-",))[0]
        asked = client, scope["method"], _target(scope)
        REQUESTS.info("%s %s %s %d %.3f s %s", *asked, reply.status, seconds, reply.id)


def _by_path(scope: Scope) -> Scope:
    """The same of a request whose target is a whole URL, as proxies are sent: its host counts."""
    scheme, found, url = scope["path"].partition("://")
    if not found or "/" in scheme:
        return scope
    authority, slash, path = url.partition("/")
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    headers.append((b"host", authority.encode()))
    return {**scope, "path": slash + path or "/", "headers": headers}


def _request_id(scope: Scope) -> str:
    """What a request is called, in its answer and in the log."""
    given = next((v for n, v in scope["headers"] if n == REQUEST_ID.encode()), b"")
    name = given.decode("latin-1")
    return name if FIT.fullmatch(name) else token_hex(8)


def _target(scope: Scope) -> str:
    """The path as it came, which is printable."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return ascii(raw.decode("latin-1"))[1:-1][:SHOWN]


def _host(headers: Headers) -> str:
    """The name in a `host` header, without its port."""
    host = headers.get("host", "").lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _require_key(headers: Headers, keys: frozenset[bytes]) -> None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not opens(keys, key.strip()):
        raise Refusal(
            401,
            "`authorization`: expected `Bearer` and a key of this server",
            code="invalid_api_key",
        )
