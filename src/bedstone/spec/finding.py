"""What reading a Definition, Solution, Workload or Trace found: errors, warnings and hints."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bedstone.errors import DefinitionError
from bedstone.spec.fault import pointer

Severity = Literal["error", "warning", "hint"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark about a document.

    An `error` makes the document unusable, a `warning` tells how it was understood, a `hint`
    is about convention only. `path` is a JSON pointer, empty for the whole.
    """

    severity: Severity
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Findings:
    """Collects what one document's reading finds."""

    def __init__(self) -> None:
        self._found: list[Finding] = []

    def add(self, severity: Severity, path: Iterable[str | int], message: str) -> None:
        """Add one remark at a trail of keys and indices."""
        self._found.append(Finding(severity, pointer(path), message))

    def all(self) -> tuple[Finding, ...]:
        """Every remark so far, in the order found."""
        return tuple(self._found)


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that make a document unusable."""
    return tuple(finding for finding in findings if finding.severity == "error")


def require_usable(findings: Iterable[Finding], what: str) -> None:
    """Require that no finding is an error; `what` names the document in the `DefinitionError`."""
    wrong = errors(findings)
    if wrong:
        more = "" if len(wrong) == 1 else f" (and {len(wrong) - 1} more)"
        raise DefinitionError(f"`{what}` cannot be used: {wrong[0]}{more}")
