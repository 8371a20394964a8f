"""Where a server answers, and what it is sent. Pure."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from bedstone.bench.load.asked import Ask
from bedstone.errors import CallerError

_PORTS = {"http": 80, "https": 443}
_COMPLETIONS, _CHAT = "/v1/completions", "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server answers, which of its models is asked, and the key it wants.

    `chat`: prompts are messages of a user, not texts to go on from.
    """

    url: str
    model: str
    key: str | None = None
    chat: bool = False

    @property
    def path(self) -> str:
        """Where requests go, below the server's own path."""
        return _CHAT if self.chat else _COMPLETIONS


@dataclass(frozen=True, slots=True)
class Place:
    """A URL in parts; `host` as in the header of that name, `path` without a slash at its end."""

    name: str
    port: int
    tls: bool
    host: str
    path: str


def parse_place(url: str) -> Place:
    """The parts of a server's URL.

    Raises `CallerError`: it is no address over HTTP.
    """
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise CallerError(f"`{url}` is no server's URL: {error}") from error
    # what is no printable ASCII would be another header, or none
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _PORTS or not name or not plain:
        raise CallerError(f"`{url}` is no server's URL: expected one as http://127.0.0.1:8000")
    port = _PORTS[parts.scheme] if port is None else port
    host = parts.netloc.rpartition("@")[2]
    return Place(name, port, parts.scheme == "https", host, parts.path.rstrip("/"))


def emit_body(server: Server, ask: Ask) -> bytes:
    """The JSON body that asks a server so."""
    asked: dict[str, object] = (
        {"messages": [{"role": "user", "content": ask.prompt}]}
        if server.chat
        else {"prompt": ask.prompt}
    )
    body = {
        "model": server.model,
        **asked,
        "max_tokens": ask.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return msgspec.json.encode(body | {"ignore_eos": True} if ask.ignore_eos else body)
