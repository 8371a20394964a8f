"""Models that claim the same checkpoints must be told apart by name: checked over a whole set.

Resolution compares the rows one checkpoint fits, so two rows collide where one checkpoint could fit
both in one tier: the same model type and no fact on which they differ.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

from bedstone.spec.record import RecordFault
from bedstone.spec.target import FACTS, ModelType
from bedstone.target.models import Model
from bedstone.target.records import fault_in, words
from bedstone.target.resolve import contains


def check_collisions(models: Mapping[str, Model], kernels: Path) -> Iterator[RecordFault]:
    """A fault for each model that could never be told from another that claims its checkpoints."""
    for one, other in combinations(models.values(), 2):
        if not _collide(one, other):
            continue
        for model, rival in ((one, other), (other, one)):
            message = _indistinct(model, rival)
            if message is not None:
                key = ("routing", "match_names")
                yield fault_in(model.path, kernels, key, message)


def _collide(one: Model, other: Model) -> bool:
    return any(
        _both_fit(a, b)
        for a in one.record.routing.model_types
        for b in other.record.routing.model_types
    )


def _both_fit(a: ModelType, b: ModelType) -> bool:
    """Whether a checkpoint may fit both rows, in one tier."""
    if a.model_type != b.model_type or (a.hidden_size is None) != (b.hidden_size is None):
        return False
    pairs = ((getattr(a, fact), getattr(b, fact)) for fact in FACTS)
    return all(x == y for x, y in pairs if x is not None and y is not None)


def _indistinct(model: Model, rival: Model) -> str | None:
    """Why no name could single out `model`, if so."""
    own = model.record.routing.match_names
    theirs = rival.record.routing.match_names
    claim = f"`{model.name}` and `{rival.name}` claim the same checkpoints"
    if not own:
        return f"{claim}: expected a match name that tells them apart, found none"
    if any(not any(contains(words(name), words(t)) for t in theirs) for name in own):
        return None
    return (
        f"{claim}, and every match name of `{model.name}` ({', '.join(own)}) holds one of "
        f"`{rival.name}` ({', '.join(theirs)}): give it one that does not, or narrow the rows"
    )
