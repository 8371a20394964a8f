"""The verdict: every fault of a manifest, or the proof that it has none."""

from bedstone.errors import ManifestError
from bedstone.spec.fault import Fault
from bedstone.spec.manifest import Manifest
from bedstone.verify.facts import Facts
from bedstone.verify.rule import judge
from bedstone.verify.table import MANIFEST_ROWS
from bedstone.verify.verified import SEAL, Verified


class RefusedError(ManifestError):
    """A manifest breaks rules: `faults` has every one of them."""

    def __init__(self, model: str, faults: tuple[Fault, ...]) -> None:
        super().__init__(model, faults)
        self.model = model
        self.faults = faults

    def __str__(self) -> str:
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        return "\n  - ".join([f"manifest `{self.model}` has {count}:", *map(str, self.faults)])


def check(manifest: Manifest) -> list[Fault]:
    """Every fault of a manifest, in a stable order; empty when it keeps every rule."""
    return list(judge(MANIFEST_ROWS, Facts.of(manifest)))


def verify(manifest: Manifest) -> Verified:
    """The manifest with the proof that it keeps every rule.

    Args:
        manifest: What was parsed or built, sound or not.

    Returns:
        The same manifest, wrapped.

    Raises:
        RefusedError: it breaks a rule; the error lists every fault, one a line.
    """
    faults = check(manifest)
    if faults:
        raise RefusedError(manifest.model, tuple(faults))
    return Verified(manifest, SEAL)
