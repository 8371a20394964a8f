"""One fault of a manifest: what a parse stops at and what verification lists."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule, where it is broken, and by what.

    `rule` is a stable id (`P4`, `C3`, `O7`), `path` a JSON pointer into the manifest
    (`/ops/f/impl/launches/0/grid/1`; empty for the whole), `objects` the names of the manifest's
    own objects at fault, `message` one sentence with what was expected and what was found.
    """

    rule: str
    path: str
    objects: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.message} [{self.rule}]"
