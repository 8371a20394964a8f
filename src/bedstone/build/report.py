"""What `plan.json` says of a step: launches, fusions, misses and memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bedstone.build.joined import Together
from bedstone.lane.schedule import Schedule


def report(schedule: Schedule, calls: Sequence[Together]) -> dict[str, Any]:
    """A JSON value: counts first, then every call by kernel, fusion and miss."""
    return {
        "form": schedule.form,
        "numerics": schedule.numerics,
        "launches": len(calls),
        "census": dict(sorted(Counter(call.kind(schedule) for call in calls).items())),
        "arena_bytes": schedule.arena_bytes,
        "arena_saved_bytes": schedule.unshared_bytes - schedule.arena_bytes,
        "kernels": [call.entry(schedule) for call in calls],
        "fusions": [asdict(fusion) for fusion in schedule.fusions],
        "misses": [asdict(miss) for miss in schedule.misses],
    }
