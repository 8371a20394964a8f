"""What a step costs: the bytes its launches move, the operations they make; counts, not times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

What = Literal["weights", "cache", "activations"]
"""What bytes are: `cache` is carried from step to step, such as keys, values, recurrent states."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of one operand that a launch reads or writes; `form` is how the values are held."""

    name: str
    what: What
    form: str
    nbytes: int
    write: bool = False


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """The operands of a launch, and its operations: two for each multiply-add."""

    moved: tuple[Moved, ...]
    operations: int

    @classmethod
    def of(cls, launches: Sequence["LaunchCost"]) -> "LaunchCost":
        """The cost of several launches that one kernel does."""
        moved = tuple(part for launch in launches for part in launch.moved)
        return cls(moved, sum(launch.operations for launch in launches))


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes by what they are, and operations."""

    weights: int
    cache: int
    activations: int
    operations: int

    @classmethod
    def of(cls, launches: Iterable[LaunchCost]) -> "Cost":
        """The cost of several launches together."""
        totals: dict[What, int] = {"weights": 0, "cache": 0, "activations": 0}
        operations = 0
        for launch in launches:
            operations += launch.operations
            for moved in launch.moved:
                totals[moved.what] += moved.nbytes
        return cls(**totals, operations=operations)

    @property
    def traffic(self) -> dict[What, int]:
        """Bytes by what they are."""
        return {"weights": self.weights, "cache": self.cache, "activations": self.activations}

    @property
    def nbytes(self) -> int:
        """All bytes moved."""
        return self.weights + self.cache + self.activations

    def seconds(self, bandwidth: float, compute: float | None = None) -> float:
        """The time that moving all bytes takes at `bandwidth` bytes a second.

        With `compute` operations a second made meanwhile, the longer of the two times.
        """
        moved = self.nbytes / bandwidth
        return moved if compute is None else max(moved, self.operations / compute)
