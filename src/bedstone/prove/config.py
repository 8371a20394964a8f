"""How a bench is run; all of it is kept in the Traces it writes."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from bedstone.errors import CallerError
from bedstone.spec.dialect.workload import emit_tolerance
from bedstone.spec.workload import Tolerance

_LEAST = {"trials": 1, "warmup": 0, "iterations": 1, "samples": 1}

DeviceName = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Config:
    """How a Solution is tried and timed.

    `trials` sets of inputs are judged before `warmup` calls that do not count and `iterations` that
    do; the outputs of `samples` of those are judged too. `cold` empties the caches before each
    call. `seconds` is for everything with one Solution and Workload. `tolerance` overrides the
    Workload's. `bandwidth`, in bytes/s, is what the device can move at most: faster is impossible.
    A number below its least is a `CallerError`.
    """

    device: DeviceName = "cpu"
    trials: int = 3
    warmup: int = 3
    iterations: int = 30
    samples: int = 3
    seed: int = 0
    cold: bool = True
    seconds: float = 300.0
    tolerance: Tolerance | None = None
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise CallerError(f"`{name}` is {value}: expected {least} at least")
        bounds = () if self.tolerance is None else (self.tolerance.rtol, self.tolerance.atol)
        for bound in bounds:
            if bound is not None and bound < 0:
                raise CallerError(f"a tolerance of {bound}: expected 0 at least")

    def json(self) -> dict[str, Any]:
        """As a Trace keeps it."""
        value = asdict(self)
        value["tolerance"] = None if self.tolerance is None else emit_tolerance(self.tolerance)
        return value
