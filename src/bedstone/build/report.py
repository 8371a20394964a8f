"""What `plan.json` says of a schedule: launches, fusions, misses and memory."""

from dataclasses import asdict
from typing import Any

from bedstone.lane.census import census
from bedstone.lane.entries import entry
from bedstone.lane.schedule import Schedule


def report(schedule: Schedule) -> dict[str, Any]:
    """A JSON value: counts first, then every launch by kernel, fusion and miss."""
    return {
        "form": schedule.form,
        "numerics": schedule.numerics,
        "launches": len(schedule.steps),
        "census": dict(sorted(census(schedule).items())),
        "arena_bytes": schedule.arena_bytes,
        "arena_saved_bytes": schedule.unshared_bytes - schedule.arena_bytes,
        "kernels": [entry(step.launch) for step in schedule.steps],
        "fusions": [asdict(fusion) for fusion in schedule.fusions],
        "misses": [asdict(miss) for miss in schedule.misses],
    }
