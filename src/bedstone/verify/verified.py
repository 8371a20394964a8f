"""The proof that a manifest keeps every rule, apart from the rules: who holds one needs no rule."""

from dataclasses import dataclass, field

from bedstone.spec.manifest import Manifest

SEAL = object()
"""What tells a proof from a claim: known to the verifier and to what keeps its verdicts."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A manifest that keeps every rule; `verify` makes one, or `recalled` after it once did."""

    manifest: Manifest
    _seal: object = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._seal is not SEAL:
            raise TypeError("`Verified` is made by `bedstone.verify.verify` only")
