"""How a server is set up from the command line, the environment, and what a model brings."""

import ipaddress
import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from bedstone.cli.environment import api_key
from bedstone.cli.serve_options import Reasoning, ToolParser
from bedstone.cli.served import read_target
from bedstone.errors import CallerError, DeviceError
from bedstone.spec.file import read_bounded
from bedstone.spec.frozen import Frozen
from bedstone.spec.package import LOCK, TARGET, emit_lock, parse_lock
from bedstone.spec.target import Policy

if TYPE_CHECKING:
    from bedstone.checkpoint.checkpoint import Checkpoint
    from bedstone.runtime.session import Session
    from bedstone.serve.engine import Options
    from bedstone.serve.http.server import Place
    from bedstone.serve.http.settings import Settings
    from bedstone.serve.http.usual import Usual
    from bedstone.serve.text.tools.table import Way

LOCAL = ("127.0.0.1", "::1", "localhost")
GENERATION = "generation_config.json"
MOST_KEYS = 1 << 20
"""Bytes of a file of keys."""
SHORTEST_KEY = 8
ANY_ORIGIN = "*"
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]+)?")
"""Browsers write it so, in lower case, and servers compare it letter by letter."""


class Manners(Frozen):
    """What the command line says of the front; None leaves it to us."""

    name: str | None
    host: str
    timeout: float
    body_bytes: int
    tool_parser: ToolParser
    reasoning: Reasoning
    origins: frozenset[str] = frozenset()
    heard: tuple[str, ...] = ()


def make_settings(
    opened: "Checkpoint", package: Path, manners: Manners, keys: tuple[str, ...]
) -> "Settings":
    """The settings of a server of that checkpoint.

    Without a key only names of this machine are answered to: a page from elsewhere that a user
    of this machine looks at could not be told from the user otherwise.
    """
    from bedstone.serve.http.settings import Settings, digests

    usual = _usual(opened, package)
    template = opened.chat_template
    source = template.source if template is not None else ""
    local = is_local(manners.host) and not keys
    return Settings(
        model=manners.name or opened.path.name.removesuffix(".gguf"),
        fingerprint=_fingerprint(package),
        keys=digests(keys),
        hosts=frozenset((*LOCAL, "[::1]", manners.host)) if local else None,
        tools=_way(manners.tool_parser, usual.behavior.tool_call_parser, source),
        reasoning=_thinks(manners.reasoning, source),
        usual=usual,
        body_bytes=manners.body_bytes,
        origins=manners.origins,
        deadline_seconds=manners.timeout,
        heard=manners.heard,
    )


def read_keys(path: Path | None) -> tuple[str, ...]:
    """The keys of a file, a line each, and the environment's.

    Raises `CallerError`: the file cannot be read or has none, or a key is too short to be one.
    """
    found = [api_key()] if api_key() else []
    if path is not None:
        try:
            text = read_bounded(path, MOST_KEYS).decode()
        except UnicodeDecodeError as error:
            raise CallerError(f"`--api-key-file {path}` is no text: {error.reason}") from error
        lines = [line.strip() for line in text.splitlines()]
        keys = [line for line in lines if line]
        if not keys:
            raise CallerError(f"`--api-key-file {path}` holds no key: expected one a line")
        found += keys
    if any(len(key) < SHORTEST_KEY for key in found):
        raise CallerError(f"a key is shorter than {SHORTEST_KEY} characters")
    return tuple(found)


def read_origins(given: Iterable[str]) -> frozenset[str]:
    """Origins of web pages as browsers spell them, or `*`.

    Raises `CallerError`: one is none.
    """
    origins = frozenset(given)
    for origin in origins:
        if origin != ANY_ORIGIN and not ORIGIN.fullmatch(origin):
            raise CallerError(
                f"`--allow-origin {origin}`: expected a scheme, a host and its port if it has one, "
                "such as `http://localhost:3000`, or `*`"
            )
    return origins


def require_private(host: str, keys: tuple[str, ...], *, told: bool) -> None:
    """Refuse to let anybody in from elsewhere, unless told to.

    Raises `CallerError`: the address is public and there is no key.
    """
    if not (is_local(host) or keys or told):
        raise CallerError(
            f"`--host {host}` can be reached from elsewhere and there is no key: give one with "
            "`--api-key-file` or BEDSTONE_API_KEY, or say `--without-key`"
        )


def is_local(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host in LOCAL:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def answer(
    session: "Session",
    opened: "Checkpoint",
    settings: "Settings",
    options: "Options",
    place: "Place",
    ready: Callable[[str], None],
    fronts: int,
) -> None:
    """Answer until told to stop; `ready` is called with the URL.

    HTTP is spoken by so many `fronts`, processes of their own, or by this one where it is 0.

    Raises `DeviceError`: the engine came to an end by itself, which ends the server.
    """
    from bedstone.serve.engine import ThreadedEngine
    from bedstone.serve.fronts.opening import Opening
    from bedstone.serve.fronts.parent import Fronts, serve_fronts
    from bedstone.serve.http.alone import serve
    from bedstone.serve.http.backend import Backend
    from bedstone.serve.http.bridge import Bridge
    from bedstone.serve.http.front import Front, Voice
    from bedstone.serve.link.hub import Hub
    from bedstone.serve.rates import Watch

    to = Hub() if fronts else Bridge()
    engine = ThreadedEngine(session, to.deliver, options, monotonic, _end)
    voice = Voice(opened.tokenizer, opened.chat_template)
    backend = Backend.of(engine, voice.tokenizer, settings, monotonic)
    with Watch(engine.stats, monotonic):
        if isinstance(to, Hub):
            opening = Opening.of(voice, settings, engine.limits, int(_local_now().timestamp()))
            serve_fronts(Fronts(backend, to, opening, fronts), place, ready)
        else:
            front = Front(backend.link, to, voice, settings, monotonic, _local_now)
            serve(front, backend, place, ready)
    if engine.fault is not None:
        raise DeviceError(f"the engine has stopped: {engine.fault}")


def _end() -> None:
    """End as if told to: whoever watches over the server starts it again."""
    os.kill(os.getpid(), signal.SIGTERM)


def _local_now() -> datetime:
    return datetime.now(UTC).astimezone()


def _fingerprint(package: Path) -> str | None:
    """A name for what a package computes, the same wherever its checkpoint lies."""
    path = package / LOCK
    if not path.is_file():
        return None
    lock = parse_lock(read_bounded(path), str(path))
    return f"bs_{sha256(emit_lock(replace(lock, checkpoint=''))).hexdigest()[:12]}"


def _usual(opened: "Checkpoint", package: Path) -> "Usual":
    from bedstone.serve.http.usual import Usual, own_settings

    known = (package / TARGET).is_file()
    policy = read_target(package).policy if known else Policy()
    return Usual(policy, own_settings(_generation(opened)))


def _generation(opened: "Checkpoint") -> Mapping[str, object]:
    """The checkpoint's own file of settings, where it is a directory that has one."""
    from bedstone.checkpoint.json_text import read_object

    path = opened.path / GENERATION
    return read_object(path) if path.is_file() else {}


def _way(asked: ToolParser, recorded: str | None, template: str) -> "Way | None":
    from bedstone.serve.text.tools.table import WAYS, guessed

    if asked is ToolParser.none or not template:
        return None
    if asked is not ToolParser.auto:
        return cast("Way", asked.value)
    found = guessed(template)
    # a template says what this checkpoint was taught, a record what its family was
    return recorded if found is None and recorded in WAYS else found


def _thinks(asked: Reasoning, template: str) -> bool:
    from bedstone.serve.text.reasoning import CLOSE

    return CLOSE in template if asked is Reasoning.auto else asked is Reasoning.on
