"""Choices drawn from a seeded generator, as plain Python values."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

ItemT = TypeVar("ItemT")


class Dice:
    """Random choices; equal seeds make equal choices."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self._rng.integers(low, high, endpoint=True))

    def pick(self, items: Sequence[ItemT]) -> ItemT:
        return items[self.between(0, len(items) - 1)]

    def some(self, items: Sequence[ItemT], most: int) -> list[ItemT]:
        """Up to `most` different items, in their order."""
        count = self.between(0, min(most, len(items)))
        return [items[i] for i in sorted(self._rng.permutation(len(items))[:count].tolist())]

    def shuffled(self, items: Sequence[ItemT]) -> list[ItemT]:
        return [items[i] for i in self._rng.permutation(len(items)).tolist()]
