"""How a bench is run; all of it is kept in the Traces it writes."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from bedstone.spec.dialect.workload import emit_tolerance
from bedstone.spec.workload import Tolerance

DeviceName = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Config:
    """How a Solution is tried and timed.

    `trials` sets of inputs are judged before `warmup` calls that do not count and `iterations` that
    do; the outputs of `samples` of those are judged too. `cold` empties the caches before each
    call. `seconds` is for everything with one Solution and Workload. `tolerance` overrides the
    Workload's. `bandwidth`, in bytes/s, is what the device can move at most: faster is impossible.
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

    def json(self) -> dict[str, Any]:
        """As a Trace keeps it."""
        value = asdict(self)
        value["tolerance"] = None if self.tolerance is None else emit_tolerance(self.tolerance)
        return value
