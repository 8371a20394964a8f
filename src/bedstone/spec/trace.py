"""One recorded outcome: a Solution run on a Workload, or a Workload that waits for one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bedstone.spec.fields import Extra
from bedstone.spec.workload import Workload

Status = Literal[
    "PASSED",
    "INCORRECT_SHAPE",
    "INCORRECT_NUMERICAL",
    "INCORRECT_DTYPE",
    "RUNTIME_ERROR",
    "COMPILE_ERROR",
    "TIMEOUT",
    "INVALID_REFERENCE",
    "REWARD_HACK",
]

SHARED_STATUSES: frozenset[Status] = frozenset(get_args(Status)) - {
    "INVALID_REFERENCE",
    "REWARD_HACK",
}
"""The statuses every reader knows; FlashInfer-Bench refuses a file with another."""


@dataclass(frozen=True, slots=True)
class Correctness:
    """The largest errors over all outputs; `extra` holds them by output, with where they lie."""

    max_relative_error: float = 0.0
    max_absolute_error: float = 0.0
    extra: Mapping[str, Any] | None = None
    unknown: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Performance:
    """Milliseconds a call took, the reference's on the same inputs, and their quotient."""

    latency_ms: float = 0.0
    reference_latency_ms: float = 0.0
    speedup_factor: float = 0.0
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where an evaluation ran: the device's name and versions by library."""

    hardware: str
    libs: Mapping[str, str] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passed:
    """Every output fits and every call was timed."""

    correctness: Correctness
    performance: Performance


@dataclass(frozen=True, slots=True)
class WrongNumbers:
    """An output is too far from the reference's."""

    correctness: Correctness


@dataclass(frozen=True, slots=True)
class Failed:
    """No numbers to speak of, for the reason `status` names."""

    status: Status


Outcome = Passed | WrongNumbers | Failed


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of a run, where and when.

    `record` says how it was measured: seed, trials, tolerance, timing method, identities of the
    Definition and the Solution. FlashInfer-Bench skips it.
    """

    outcome: Outcome
    environment: Environment
    timestamp: str
    log: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The outcome in one word."""
        match self.outcome:
            case Passed():
                return "PASSED"
            case WrongNumbers():
                return "INCORRECT_NUMERICAL"
            case Failed(status):
                return status


@dataclass(frozen=True, slots=True)
class Trace:
    """A Workload of the Definition named `definition` and, if it was run, what came of it."""

    definition: str
    workload: Workload
    solution: str | None = None
    evaluation: Evaluation | None = None
    extra: Extra = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether a Solution was run on it and every output fits."""
        return self.evaluation is not None and isinstance(self.evaluation.outcome, Passed)
