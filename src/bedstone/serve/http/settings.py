"""How a server is set up, and the limits that hold whatever a client sends."""

import hashlib
import hmac
from collections.abc import Iterable

from bedstone.serve.http.usual import Usual
from bedstone.serve.text.tools.table import Way
from bedstone.spec.frozen import Frozen

MEBI = 1 << 20


class Settings(Frozen):
    """What a server offers and how much of it.

    `model` is the name it is served by, `fingerprint` that of what computes it. `keys` are digests
    of the keys that open it, none opens it to all. `hosts` are the names it answers to, any where
    it is None, `origins` those of web pages that may ask, `*` any. `tools` is how the model writes
    calls, None where it makes none; `reasoning` whether its thoughts are told apart; `usual` what
    holds where a request does not say. `heard` are the server's own loggers that write more than
    errors.
    """

    model: str
    fingerprint: str | None = None
    keys: frozenset[bytes] = frozenset()
    hosts: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    tools: Way | None = None
    reasoning: bool = False
    usual: Usual = Usual()
    body_bytes: int = 4 * MEBI
    body_seconds: float = 30.0
    deadline_seconds: float = 600.0
    write_seconds: float = 30.0
    waiting_events: int = 4096
    comment_seconds: float = 15.0
    compile_seconds: float = 10.0
    heard: tuple[str, ...] = ()


def digests(keys: Iterable[str]) -> frozenset[bytes]:
    """Keys as a server keeps them."""
    return frozenset(hashlib.sha256(key.encode()).digest() for key in keys)


def opens(keys: frozenset[bytes], key: str) -> bool:
    """Whether a client's key is one of them, in a time that tells nothing of them."""
    given = hashlib.sha256(key.encode(errors="surrogateescape")).digest()
    return sum(hmac.compare_digest(given, each) for each in keys) > 0
