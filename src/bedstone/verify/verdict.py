"""The verdict: every fault of a manifest, or the proof that it has none."""

from dataclasses import dataclass, field

from bedstone.errors import ManifestError
from bedstone.spec.fault import Fault
from bedstone.spec.manifest import Manifest
from bedstone.verify.facts import Facts
from bedstone.verify.rule import judge
from bedstone.verify.table import MANIFEST_ROWS

_SEAL = object()


@dataclass(frozen=True, slots=True)
class Verified:
    """A manifest that keeps every rule; only `verify` makes one."""

    manifest: Manifest
    _seal: object = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._seal is not _SEAL:
            raise TypeError("`Verified` is made by `bedstone.verify.verify` only")


def check(manifest: Manifest) -> list[Fault]:
    """Every fault of a manifest, in a stable order; empty when it keeps every rule."""
    return list(judge(MANIFEST_ROWS, Facts.of(manifest)))


def verify(manifest: Manifest) -> Verified:
    """The manifest with its proof.

    Raises:
        ManifestError: it breaks a rule; the message lists every fault, one a line.
    """
    faults = check(manifest)
    if faults:
        lines = "".join(f"\n  - {fault}" for fault in faults)
        raise ManifestError(f"manifest `{manifest.model}` breaks {len(faults)} rule(s):{lines}")
    return Verified(manifest, _SEAL)
