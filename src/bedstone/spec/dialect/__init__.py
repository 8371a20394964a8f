"""Definitions, Solutions, Workloads and Traces as JSON: three dialects in, any of them out.

`fib` is FlashInfer-Bench's, `flashinfer` that of FlashInfer's own dumps, `sol` SOL-ExecBench's.
Reading takes all three and whatever older revisions wrote, says how it understood it, and keeps
members it does not know. Writing says what the other side will not understand.
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from bedstone.errors import DefinitionError
from bedstone.spec.finding import Finding, errors, require_usable

Dialect = Literal["fib", "flashinfer", "sol"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A document as understood: `value` is meaningless where a finding is an error."""

    value: T
    dialect: Dialect
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether no finding is an error."""
        return not errors(self.findings)

    def require(self, what: str) -> T:
        """The value; a `DefinitionError` where a finding is an error, `what` names the document."""
        require_usable(self.findings, what)
        return self.value


@dataclass(frozen=True, slots=True)
class Loss:
    """What a dialect cannot say; where `fatal`, its readers refuse the file."""

    path: str
    message: str
    fatal: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Emission:
    """A JSON value in one dialect and what was lost on the way."""

    value: dict[str, Any]
    losses: tuple[Loss, ...] = ()

    def require(self, what: str) -> dict[str, Any]:
        """The value; a `DefinitionError` where the dialect's readers would refuse it."""
        for loss in self.losses:
            if loss.fatal:
                raise DefinitionError(f"`{what}` cannot be said in that dialect: {loss}")
        return self.value
