"""The edits of logits that the rows of a step have, kept as tokens come: of all of them at once."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.edits import Edits
from bedstone.runtime.ports import Input
from bedstone.serve.engine.kept import Changed, Entries, Fronts, Kept
from bedstone.spec.sampling import Knobs

_NONE = np.zeros(0, np.int32)


class Edited:
    """The inputs of edits, a row a sequence: as if `Edits.make` was called for each row's token."""

    def __init__(self, knobs: Knobs, take: Callable[[str], Input], changed: Changed) -> None:
        self._counts = Entries(take(knobs.edits), changed)
        self._fronts = tuple(
            Fronts(take(name), changed)
            for name in (knobs.edit_token, knobs.edit_scale, knobs.edit_add)
        )
        self._kept: tuple[Kept, ...] = (self._counts, *self._fronts)
        rows, self._width = take(knobs.edit_token).values.shape
        self._index: list[dict[int, int] | None] = [None] * rows
        self._made = np.zeros((rows, self._width), np.int32)
        self._biases = np.zeros((rows, self._width))
        # of each row: what scales a logit, and what is taken off it once and each time
        self._scale, self._presence, self._frequency = np.zeros((3, rows))
        self._of: tuple[int, NDArray[np.intp], list[dict[int, int]]] | None = None

    def set(self, row: int, edits: Edits | None) -> None:
        """What a row has from now on."""
        self._of = None
        self._index[row] = None if edits is None else edits.index
        for kept, value in self._values(edits):
            kept.set(row, value)
        if edits is not None:
            sampling, count = edits.sampling, edits.count
            self._made[row, :count] = edits.made[:count]
            self._made[row, count:] = 0
            self._biases[row, :count] = edits.biases[:count]
            self._biases[row, count:] = 0
            self._scale[row] = sampling.repetition
            self._presence[row], self._frequency[row] = sampling.presence, sampling.frequency

    def move(self, source: int, target: int) -> None:
        """A row has what another had."""
        self._of = None
        index = self._index[target] = self._index[source]
        for kept in self._kept:
            kept.move(source, target)
        if index is not None:
            for each in (self._made, self._biases, self._scale, self._presence, self._frequency):
                each[target] = each[source]

    def lend(self, edits: Edits | None) -> None:
        """Write it as the first row for a call of one sequence."""
        for kept, value in self._values(edits):
            kept.lend(value)

    def make(self, made: NDArray[np.generic], tokens: Items[int]) -> None:
        """Each of the first rows [n] has made a token: those made, and the same as `tokens`."""
        rows, indices = self._editing(len(tokens))
        if not indices:
            return
        some = len(indices) < len(tokens)
        picked = [tokens[row] for row in rows.tolist()] if some else tokens
        # whoever has no entry yet takes the next
        entries = np.array(
            [
                index.setdefault(token, len(index))
                for index, token in zip(indices, picked, strict=True)
            ]
        )
        at = rows * self._width + entries
        times = self._made.reshape(-1)[at] + 1
        self._made.reshape(-1)[at] = times
        adds = self._biases.reshape(-1)[at] - self._presence[rows] - self._frequency[rows] * times
        self._counts.set_each(rows, np.maximum(self._counts.of(rows), entries + 1))
        values = (made[rows] if some else made, self._scale[rows], adds)
        for fronts, each in zip(self._fronts, values, strict=True):
            fronts.put(rows, entries, each)

    def _editing(self, count: int) -> tuple[NDArray[np.intp], list[dict[int, int]]]:
        """Which of the first rows have edits, and which entry of each is a token's."""
        if self._of is None or self._of[0] != count:
            some = [
                (row, index) for row, index in enumerate(self._index[:count]) if index is not None
            ]
            rows = np.array([row for row, _ in some], np.intp)
            self._of = count, rows, [index for _, index in some]
        return self._of[1], self._of[2]

    def _values(self, edits: Edits | None) -> Iterator[tuple[Kept, Any]]:
        """What each input holds of a sequence; what nobody reads is left as it is."""
        count = 0 if edits is None else edits.count
        yield self._counts, count
        columns = (_NONE,) * 3 if edits is None else (edits.tokens, edits.scales, edits.adds)
        for fronts, column in zip(self._fronts, columns, strict=True):
            yield fronts, column[:count]
