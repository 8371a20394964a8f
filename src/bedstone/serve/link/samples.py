"""What meters of several processes hold together. Pure."""

from collections.abc import Iterable, Mapping, Sequence

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]
"""Its own name, its labels, its value."""
Samples = Mapping[str, Sequence[Sample]]
"""What meters hold, by the family's name."""


def added(parts: Iterable[Samples]) -> Samples:
    """Samples of equal names and labels are one, of all their values together."""
    sums: dict[str, dict[tuple[str, Labels], float]] = {}
    for part in parts:
        for family, samples in part.items():
            held = sums.setdefault(family, {})
            for name, labels, value in samples:
                held[name, labels] = held.get((name, labels), 0.0) + value
    return {
        family: [(name, labels, value) for (name, labels), value in held.items()]
        for family, held in sums.items()
    }
