"""Which memory a stretch of calls may touch, by what their ops declare. Pure."""

from bedstone.prove.swap.frontier import Flow, Place
from bedstone.runtime.lower import Region
from bedstone.spec.manifest import Manifest


class Reach:
    """The regions that calls of a program are declared to read and to write."""

    def __init__(self, manifest: Manifest, program: str) -> None:
        self._flow = Flow(manifest, program)
        calls = manifest.programs[program].calls
        self._scratch = [
            frozenset(
                Region("scratch", call.op, part) for part in manifest.ops[call.op].impl.scratch
            )
            for call in calls
        ]

    def written(self, start: int, stop: int) -> frozenset[Region]:
        """What calls [start, stop) write."""
        places = self._flow.frontier(start, stop).written
        return frozenset(map(region_of, places)).union(*self._scratch[start:stop])

    def touched(self, start: int, stop: int) -> frozenset[Region]:
        """What calls [start, stop) write, or read of what was there before."""
        reads = self._flow.frontier(start, stop).reads
        return self.written(start, stop).union(map(region_of, reads))


def region_of(place: Place) -> Region:
    """The memory that a place lies in."""
    return Region("state" if place.kind == "state" else "buffer", place.name)
