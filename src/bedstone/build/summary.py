"""A planned step in numbers: what `bedstone plan` prints and its page shows above the drawing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bedstone.build.costs import Cost
from bedstone.build.counting import launch_costs
from bedstone.build.joined import Together
from bedstone.build.step import PlannedStep
from bedstone.lane.schedule import Miss, Schedule
from bedstone.lane.touch import touches
from bedstone.models.layering import layer_of


@dataclass(frozen=True, slots=True)
class MissGroup:
    """Misses of one rule for one reason; `why` is the first one's, in words."""

    rule: str
    reason: str
    why: str
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of one form. `layers` holds each layer's launches, `outside` those of no layer."""

    rows: int
    at: int
    launches: int
    layers: tuple[int, ...]
    outside: int
    census: Mapping[str, int]
    fusions: Mapping[str, int]
    misses: tuple[MissGroup, ...]
    cost: Cost
    arena_bytes: int
    unshared_bytes: int

    @property
    def per_layer(self) -> int:
        """The launches of the layer that has most."""
        return max(self.layers, default=0)

    def json(self, bandwidth: float, compute: float | None) -> dict[str, Any]:
        """The JSON object of a report; rates in bytes and operations a second."""
        return {
            "rows": self.rows,
            "at": self.at,
            "launches": self.launches,
            "per_layer": self.per_layer,
            "layers": list(self.layers),
            "outside": self.outside,
            "census": dict(self.census),
            "fusions": dict(self.fusions),
            "misses": [asdict(group) for group in self.misses],
            "bytes": self.cost.nbytes,
            "traffic": self.cost.traffic,
            "operations": self.cost.operations,
            "roofline_seconds": self.cost.seconds(bandwidth, compute),
            "arena": {
                "bytes": self.arena_bytes,
                "saved": self.unshared_bytes - self.arena_bytes,
            },
        }


def summarize(planned: PlannedStep, at: int) -> Summary:
    """Count one form of a step whose last rows stand at position `at`."""
    schedule = planned.schedule
    at = max(at, schedule.rows) if schedule.form == "chunk" else at
    calls, counts = planned.calls, Counter(launch_layers(planned))
    last = max((layer for layer in counts if layer is not None), default=-1)
    return Summary(
        rows=schedule.rows,
        at=at,
        launches=len(calls),
        layers=tuple(counts[layer] for layer in range(last + 1)),
        outside=counts[None],
        census=_most_first(Counter(call.kind(schedule) for call in calls)),
        fusions=_most_first(Counter(fusion.rule for fusion in schedule.fusions)),
        misses=_grouped(schedule.misses),
        cost=Cost.of(launch_costs(planned, at)),
        arena_bytes=schedule.arena_bytes,
        unshared_bytes=schedule.unshared_bytes,
    )


def launch_layers(planned: PlannedStep) -> tuple[int | None, ...]:
    """The layer of each launch.

    A launch that closes one layer and opens the next, such as a sum and the norm of it, counts in
    the one it opens. What comes before the first layer and after the last belongs to none.
    """
    return tuple(_layer(planned.schedule, call) for call in planned.calls)


def _layer(schedule: Schedule, call: Together) -> int | None:
    launches = [step.launch for step in call.steps(schedule)]
    made = {layer_of(each.tensor) for one in launches for each in touches(one) if each.write}
    layers = [layer for layer in made if layer is not None]
    return max(layers) if len(layers) == len(made) and layers else None


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _grouped(misses: Iterable[Miss]) -> tuple[MissGroup, ...]:
    groups: dict[tuple[str, str], list[Miss]] = {}
    for miss in misses:
        groups.setdefault((miss.rule, miss.reason), []).append(miss)
    return tuple(
        MissGroup(rule, reason, found[0].why, len(found))
        for (rule, reason), found in groups.items()
    )
