"""What a caller changes of a sequence's logits: penalties and biases, as edits of tokens."""

import numpy as np

from bedstone.errors import CapacityError
from bedstone.spec.sampling import Sampling


class Edits:
    """The edits of one sequence, kept as its tokens come.

    Of the first `count` entries of `tokens`, `scales` and `adds` each edits one token's logit;
    `index` says which is a token's. Of it `made` counts how often it was made, and `biases` is what
    is added in any case. `counted` are all the tokens that were made.
    """

    __slots__ = (
        "adds",
        "biases",
        "count",
        "counted",
        "index",
        "made",
        "sampling",
        "scales",
        "tokens",
    )

    def __init__(self, sampling: Sampling, most: int) -> None:
        self.count = self.counted = 0
        self.tokens = np.zeros(most, np.int32)
        self.scales = np.ones(most, np.float32)
        self.adds = np.zeros(most, np.float32)
        self.made = np.zeros(most, np.int32)
        self.biases = np.zeros(most)
        self.sampling = sampling
        self.index: dict[int, int] = {}
        for token, bias in sampling.bias.items():
            entry = self._entry(token)
            self.adds[entry] = self.biases[entry] = bias

    def read(self, token: int) -> None:
        """The prompt has a token."""
        if self.sampling.repetition != 1:
            self.scales[self._entry(token)] = self.sampling.repetition

    def make(self, token: int) -> tuple[int, int, float, float]:
        """The output has a token; which entry is another now: its token, scale and sum."""
        sampling = self.sampling
        entry = self._entry(token)
        self.counted += 1
        self.made[entry] += 1
        scale = self.scales[entry] = sampling.repetition
        lost = sampling.presence, sampling.frequency * int(self.made[entry])
        add = self.adds[entry] = float(self.biases[entry]) - lost[0] - lost[1]
        return entry, token, scale, add

    def _entry(self, token: int) -> int:
        entry = self.index.get(token)
        if entry is None:
            if self.count == len(self.tokens):
                raise CapacityError(f"logits of {self.count} tokens are edited, as many as may be")
            entry = self.index[token] = self.count
            self.tokens[entry] = token
            self.count += 1
        return entry


def edits_anything(sampling: Sampling) -> bool:
    """Whether logits are edited at all."""
    return bool(
        sampling.bias or sampling.presence or sampling.frequency or sampling.repetition != 1
    )
