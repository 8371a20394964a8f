"""What a run found: times beside what the plan counts and what the machine can do. Pure."""

from dataclasses import asdict, dataclass
from typing import Any

from bedstone.bench.cases import Case
from bedstone.bench.rates import Rates
from bedstone.bench.spread import Spread, ratios
from bedstone.build.costs import Cost

RANDOM_WEIGHTS = (
    "about N(0, 0.02), from a seeded generator: one block of up to 64 MiB end to end, each tensor "
    "from another place on"
)
RANDOM_CACHE = "random numbers, 16 MiB of them end to end"


@dataclass(frozen=True, slots=True)
class Ran:
    """A package: what it was compiled of and for, and seconds of its load.

    `weights` says what they are where they are not a checkpoint's; `draw_seconds` is how long
    making them took, which no load has to.
    """

    path: str
    model: str
    checkpoint: str
    target: str
    numerics: str
    context: int
    sequences: int
    load_seconds: float
    weights: str | None
    draw_seconds: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """A case by a package. Rates and shares are of the median."""

    case: Case
    package: int
    steps: int
    seconds: Spread
    samples: tuple[float, ...]
    cost: Cost
    machine: Rates

    @property
    def tokens_per_second(self) -> float:
        """Tokens that went in a second."""
        return self.case.tokens / self.seconds.median

    @property
    def of_bandwidth(self) -> float:
        """Bytes moved a second, of those that the machine copies."""
        return self.cost.nbytes / self.seconds.median / self.machine.bandwidth

    @property
    def of_operations(self) -> float | None:
        """Operations a second, of those that the machine multiplies with."""
        rate = self.machine.operations
        return None if rate is None else self.cost.operations / self.seconds.median / rate

    @property
    def limit_seconds(self) -> float:
        """The time that moving the bytes and making the operations meanwhile takes at least."""
        return self.cost.seconds(self.machine.bandwidth, self.machine.operations)

    def json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            **asdict(self.case),
            "package": self.package,
            "steps_a_sample": self.steps,
            "seconds": asdict(self.seconds),
            "tokens_per_second": self.tokens_per_second,
            "bytes": self.cost.nbytes,
            "traffic": self.cost.traffic,
            "operations": self.cost.operations,
            "of_bandwidth": self.of_bandwidth,
            "of_operations": self.of_operations,
            "limit_seconds": self.limit_seconds,
            "of_limit": self.limit_seconds / self.seconds.median,
        }


@dataclass(frozen=True, slots=True)
class Record:
    """A whole run; `first_seconds` from the process's start to the first package's first token."""

    device: str
    machine: Rates
    packages: tuple[Ran, ...]
    results: tuple[Result, ...]
    first_seconds: float | None

    @property
    def comparisons(self) -> tuple[tuple[Case, Spread], ...]:
        """Of two packages: how many times as long the second takes in each case."""
        if len(self.packages) < 2:
            return ()
        ours, theirs = ([r for r in self.results if r.package == at] for at in (0, 1))
        pairs = zip(ours, theirs, strict=True)
        return tuple((a.case, ratios(a.samples, b.samples)) for a, b in pairs)

    def json(self) -> dict[str, Any]:
        """The JSON object of `--json`."""
        return {
            "device": self.device,
            "machine": asdict(self.machine),
            "packages": [asdict(ran) for ran in self.packages],
            "process_start_to_first_token_seconds": self.first_seconds,
            "cache": RANDOM_CACHE,
            "results": [result.json() for result in self.results],
            "against": [
                {**asdict(case), "times_as_long": asdict(spread)}
                for case, spread in self.comparisons
            ],
        }
