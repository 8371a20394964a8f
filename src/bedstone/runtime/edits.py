"""What a caller changes of a sequence's logits: penalties and biases, as edits of tokens."""

import numpy as np

from bedstone.errors import CapacityError
from bedstone.spec.sampling import Sampling


class Edits:
    """The edits of one sequence, kept as its tokens come.

    Of the first `count` entries of `tokens`, `scales` and `adds` each edits one token's logit.
    """

    __slots__ = ("_index", "_made", "_sampling", "adds", "count", "scales", "tokens")

    def __init__(self, sampling: Sampling, most: int) -> None:
        self.count = 0
        self.tokens = np.zeros(most, np.int32)
        self.scales = np.ones(most, np.float32)
        self.adds = np.zeros(most, np.float32)
        self._sampling = sampling
        self._index: dict[int, int] = {}
        self._made: dict[int, int] = {}
        for token, bias in sampling.bias.items():
            self.adds[self._entry(token)] = bias

    def read(self, token: int) -> None:
        """The prompt has a token."""
        if self._sampling.repetition != 1:
            self.scales[self._entry(token)] = self._sampling.repetition

    def make(self, token: int) -> tuple[int, int, float, float]:
        """The output has a token; which entry is another now: its token, scale and sum."""
        sampling = self._sampling
        made = self._made[token] = self._made.get(token, 0) + 1
        entry = self._entry(token)
        scale = self.scales[entry] = sampling.repetition
        bias = sampling.bias.get(token, 0.0)
        add = self.adds[entry] = bias - sampling.presence - sampling.frequency * made
        return entry, token, scale, add

    def _entry(self, token: int) -> int:
        entry = self._index.get(token)
        if entry is None:
            if self.count == len(self.tokens):
                raise CapacityError(f"logits of {self.count} tokens are edited, as many as may be")
            entry = self._index[token] = self.count
            self.tokens[entry] = token
            self.count += 1
        return entry


def edits_anything(sampling: Sampling) -> bool:
    """Whether logits are edited at all."""
    return bool(
        sampling.bias or sampling.presence or sampling.frequency or sampling.repetition != 1
    )
