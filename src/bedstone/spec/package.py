"""The directory a compile writes: which file holds what, what it came from and what it is for."""

from typing import Annotated, Any, TypeVar

import msgspec

from bedstone.errors import ManifestError
from bedstone.spec.target import Policy

MANIFEST = "manifest.json"
KERNELS = "kernels"
TOKENIZER = "tokenizer.json"
PLAN = "plan.json"
LOCK = "lock.json"
TARGET = "target.json"

RecordT = TypeVar("RecordT")


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The identities a package was made from.

    `bedstone` is the version that compiled it. `checkpoint` is the reference as given, resolved to
    an absolute path unless it names an installed package; `identity` the sha256 its headers had;
    `context` the most positions of a sequence, `sequences` the most that a step decodes and `page`
    the tokens of a page; `sources` the sha256 over Bedstone's own code and kernels; `modules` the
    sha256 of each module's file, `sampling` that of the record of a sampler, where there is one.
    """

    bedstone: str
    checkpoint: str
    identity: str
    target: str
    numerics: str
    context: Annotated[int, msgspec.Meta(ge=1)]
    sequences: Annotated[int, msgspec.Meta(ge=1)]
    page: Annotated[int, msgspec.Meta(ge=1)]
    compiler: str
    sources: str
    modules: dict[str, str]
    sampling: str | None = None

    def pages(self, tokens: int) -> int:
        """Tokens of the whole pages that hold `tokens`, or the longest sequence if that is less."""
        return -(-min(tokens, self.context) // self.page) * self.page


class ModuleFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A compiled module as its own bytes describe it."""

    form: str
    arch: str
    sha256: str


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a package was compiled for, and the audit it passed.

    `model` names the record whose `policy` a server follows; `borrowed` says that it is another
    model's. `kernel_set` is the sha256 over all `modules`, `found` the module of each entry that
    the manifest calls.
    """

    hardware: str
    arch: str
    features: tuple[str, ...]
    model: str
    quantization: str | None
    borrowed: bool
    kernel_set: str
    modules: dict[str, ModuleFact]
    found: dict[str, str]
    policy: Policy


def emit_lock(lock: Lock) -> bytes:
    """The lock's file contents."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=2) + b"\n"


def parse_lock(text: bytes, where: str) -> Lock:
    """Read a lock's file contents; `where` names the file in errors.

    Raises `ManifestError`: the text is no lock.
    """
    return _parse(text, Lock, f"`{where}` is no package lock")


def parse_target(text: bytes, where: str) -> Target:
    """Read what a package was compiled for; `where` names the file in errors.

    Raises `ManifestError`: the text says no such thing.
    """
    return _parse(text, Target, f"`{where}` is no package target")


def emit_json(value: Any) -> bytes:  # noqa: ANN401  (any JSON value)
    """A file's contents for a report."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _parse(text: bytes, kind: type[RecordT], refusal: str) -> RecordT:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise ManifestError(f"{refusal}: {error}") from error
