"""The directory a compile writes: which file holds what, and the lock that tells its origin."""

from typing import Annotated, Any

import msgspec

from bedstone.errors import ManifestError

MANIFEST = "manifest.json"
KERNELS = "kernels"
TOKENIZER = "tokenizer.json"
PLAN = "plan.json"
LOCK = "lock.json"


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identities a package was made from.

    `bedstone` is the version that compiled it. `checkpoint` is the reference as given, resolved to
    an absolute path unless it names an installed package; `identity` the sha256 its headers had;
    `context` the most positions of a sequence and `page` the tokens of a page; `sources` the sha256
    over Bedstone's own code and kernels; `modules` the sha256 of each module's file.
    """

    bedstone: str
    checkpoint: str
    identity: str
    target: str
    numerics: str
    context: Annotated[int, msgspec.Meta(ge=1)]
    page: Annotated[int, msgspec.Meta(ge=1)]
    compiler: str
    sources: str
    modules: dict[str, str]

    def pages(self, tokens: int) -> int:
        """Tokens of the whole pages that hold `tokens`, or the longest sequence if that is less."""
        return -(-min(tokens, self.context) // self.page) * self.page


def emit_lock(lock: Lock) -> bytes:
    """The lock's file contents."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=2) + b"\n"


def parse_lock(text: bytes, where: str) -> Lock:
    """Read a lock's file contents; `where` names the file in errors.

    Raises `ManifestError`: the text is no lock.
    """
    try:
        return msgspec.json.decode(text, type=Lock)
    except msgspec.MsgspecError as error:
        raise ManifestError(f"`{where}` is no package lock: {error}") from error


def emit_json(value: Any) -> bytes:  # noqa: ANN401  (any JSON value)
    """A file's contents for a report."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
