"""The edits of logits that the rows of a step have, kept as tokens come: of all of them at once."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.device import Places
from bedstone.runtime.edits import Edits
from bedstone.runtime.ports import Input
from bedstone.serve.engine.kept import Changed, Entries, Fronts, Kept
from bedstone.spec.sampling import Knobs

_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class _Editing:
    """The rows [n] that have edits, of the first `of`; what is the same with each of their tokens.

    `index` says which entry of a row is a token's; rows start at `starts` in the order of memory.
    Of a logit `once` and `each` time are taken off. `biased`: some have biases; `late`: and scale
    what they make, which only then is so of a token with a bias.
    """

    of: int
    rows: NDArray[np.intp]
    index: tuple[dict[int, int], ...]
    starts: NDArray[np.intp]
    scale: NDArray[np.float64]
    once: NDArray[np.float64]
    each: NDArray[np.float64]
    biased: bool
    late: bool

    @property
    def some(self) -> bool:
        """Whether others have none."""
        return len(self.index) < self.of


class Edited:
    """The inputs of edits, a row a sequence: as if `Edits.make` was called for each row's token."""

    def __init__(self, knobs: Knobs, take: Callable[[str], Input], changed: Changed) -> None:
        self._counts = Entries(take(knobs.edits), changed)
        self._tokens, self._scales, self._adds = self._fronts = tuple(
            Fronts(take(name), changed)
            for name in (knobs.edit_token, knobs.edit_scale, knobs.edit_add)
        )
        self._kept: tuple[Kept, ...] = (self._counts, *self._fronts)
        rows, width = take(knobs.edit_token).values.shape
        self._edits: list[Edits | None] = [None] * rows
        self._made = np.zeros((rows, width), np.int32)
        self._biases = np.zeros((rows, width))
        self._editing: _Editing | None = None

    def set(self, row: int, edits: Edits | None) -> None:
        """What a row has from now on."""
        self._editing, self._edits[row] = None, edits
        for kept, value in self._values(edits):
            kept.set(row, value)
        if edits is not None:
            # what it makes is scaled alike, whichever token that is
            scales = edits.scales.copy()
            scales[edits.count :] = edits.sampling.repetition
            self._scales.set(row, scales)
            most = len(edits.tokens)
            self._made[row, :most], self._biases[row, :most] = edits.made, edits.biases

    def move(self, source: int, target: int) -> None:
        """A row has what another had."""
        self._editing = None
        edits = self._edits[target] = self._edits[source]
        for kept in self._kept:
            kept.move(source, target)
        if edits is not None:
            most = len(edits.tokens)
            for each in (self._made, self._biases):
                each[target, :most] = each[source, :most]

    def lend(self, edits: Edits | None) -> None:
        """Write it as the first row for a call of one sequence."""
        for kept, value in self._values(edits):
            kept.lend(value)

    def make(self, made: NDArray[np.generic], tokens: Items[int]) -> None:
        """Each of the first rows [n] has made a token: those made, and the same as `tokens`."""
        editing = self._editing
        if editing is None or editing.of != len(tokens):
            editing = self._editing = self._found(len(tokens))
        if not editing.index:
            return
        picked = [tokens[row] for row in editing.rows.tolist()] if editing.some else tokens
        # whoever has no entry yet takes the next
        pairs = zip(editing.index, picked, strict=True)
        entries = [index.setdefault(token, len(index)) for index, token in pairs]
        at = editing.starts + entries
        box = int(editing.rows[0]), int(editing.rows[-1]), min(entries), max(entries)
        places, counts = Places(at, *box), list(map(len, editing.index))
        flat = self._made.reshape(-1)
        flat[at] = times = flat[at] + 1
        once = self._biases.reshape(-1)[at] - editing.once if editing.biased else -editing.once
        self._tokens.put(places, made[editing.rows] if editing.some else made)
        self._adds.put(places, once - editing.each * times)
        if editing.late:
            self._scales.put(places, editing.scale)
        for fronts in (self._tokens, self._adds):
            fronts.use(editing.rows, counts)
        self._counts.set_each(editing.rows, counts)

    def _found(self, count: int) -> _Editing:
        some = [(row, edits) for row, edits in enumerate(self._edits[:count]) if edits is not None]
        rows = np.array([row for row, _ in some], np.intp)
        asked = [edits.sampling for _, edits in some]
        scale, once, each = np.array(
            [(one.repetition, one.presence, one.frequency) for one in asked] or np.zeros((0, 3))
        ).T
        return _Editing(
            count,
            rows,
            tuple(edits.index for _, edits in some),
            rows * self._made.shape[1],
            scale,
            once,
            each,
            any(one.bias for one in asked),
            any(one.bias and one.repetition != 1 for one in asked),
        )

    def _values(self, edits: Edits | None) -> Iterator[tuple[Kept, Any]]:
        """What each input holds of a sequence; what nobody reads is left as it is."""
        count = 0 if edits is None else edits.count
        yield self._counts, count
        columns = (_NONE,) * 3 if edits is None else (edits.tokens, edits.scales, edits.adds)
        for fronts, column in zip(self._fronts, columns, strict=True):
            yield fronts, column[:count]
