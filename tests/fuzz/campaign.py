"""Differential fuzzing: changed manifests judged by us and by the reference reader."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance_cases import ACCEPTED, Case, accepted_text, cases
from fuzz.comparison import Disagreement, disagreement, judged
from fuzz.dice import Dice
from fuzz.generator import draw_manifest
from fuzz.mutations import Pool, mutated, pool_of
from reference_reader import reference_reader

DRAWN_DONORS = 40


@dataclass(frozen=True, slots=True)
class Trial:
    """One manifest, the reference's verdict, and how ours differs, if it does."""

    seed: int
    text: str
    accepted: bool
    messages: tuple[str, ...]
    differs: Disagreement | None

    @property
    def is_found(self) -> bool:
        """Whether the two differ where we do not mean to."""
        return self.differs is not None and self.differs.allowed is None


def trials(seeds: Iterable[int]) -> Iterator[Trial]:
    """A trial for each seed."""
    with reference_reader() as reader:
        for seed in seeds:
            text = changed_manifest(seed)
            answer = reader.ask(text)
            yield Trial(seed, text, answer.accepted, answer.messages, disagreement(text, answer))


def changed_manifest(seed: int) -> str:
    """The text of a sound manifest after one or two changes; equal seeds give equal texts."""
    dice = Dice(seed)
    originals, pool = _material()
    text = draw_manifest(seed) if dice.chance(0.5) else json.loads(dice.pick(originals))
    for _ in range(dice.pick([0, 1])):
        once = _object(mutated(text, dice, pool))
        text = once if once is not None else text
    return mutated(text, dice, pool)


def _object(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@cache
def _material() -> tuple[tuple[str, ...], Pool]:
    """The stored manifests, and what these and some drawn ones have at each place."""
    originals = tuple(accepted_text(name) for name in ACCEPTED if name != "20_positional")
    drawn = (draw_manifest(seed) for seed in range(DRAWN_DONORS))
    broken = (json.loads(case.text) for case in cases() if not case.accepted and _is_typed(case))
    return originals, pool_of([*map(json.loads, originals), *drawn], broken)


def _is_typed(case: Case) -> bool:
    return judged(case.text).parsed
