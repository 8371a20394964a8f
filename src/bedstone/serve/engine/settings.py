"""How each row's token is drawn, as the inputs of a sampler hold it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.edits import Edits
from bedstone.runtime.ports import Input
from bedstone.serve.engine.edited import Edited
from bedstone.serve.engine.kept import Changed, Entries, Fronts, Kept
from bedstone.serve.engine.sequence import Sequence
from bedstone.spec.manifest import Fill
from bedstone.spec.sampling import LIKELIEST, Knobs, Sampling, signed
from bedstone.verify.protocol import Protocol

_FILLS: Mapping[Fill, Callable[[Sampling], float]] = {
    "temperature": lambda sampling: sampling.temperature,
    "top_k": lambda sampling: max(0, sampling.top_k),
    "top_p": lambda sampling: sampling.top_p,
    "min_p": lambda sampling: sampling.min_p,
    "seed": lambda sampling: signed(sampling.seed),
}

Likely = tuple[float | None, tuple[tuple[int, float], ...]]
"""How likely a token was, None where nobody asks, and the likeliest ones."""

_NONE = np.zeros(0, np.int32)
_UNTOLD: Likely = None, ()

Value = NDArray[Any] | float


class Settings:
    """The inputs of a sampler, a row a sequence. Without one there are none."""

    def __init__(
        self,
        protocol: Protocol,
        knobs: Knobs | None,
        take: Callable[[str], Input],
    ) -> None:
        self._changed = changed = Changed()
        self._fills = [
            (fill, Entries(take(role.buffer), changed))
            for role in protocol.roles
            if (fill := _FILLS.get(role.fill)) is not None and role.over == "groups"
        ]
        self._knobs = None if knobs is None else _KnobInputs(knobs, take, changed)
        self._edited = None if knobs is None else Edited(knobs, take, changed)
        self._kept: list[Kept] = [entries for _, entries in self._fills]
        self._kept += [] if self._knobs is None else self._knobs.kept
        # of each row: how its tokens are drawn, None where more is said of it
        self._said: dict[int, Sampling | None] = {}

    def seat(self, sequence: Sequence) -> None:
        """Write down how the tokens of a sequence with a row are drawn."""
        row, said = sequence.row, _all_said(sequence)
        # most ask for the same
        if said is not None and said == self._said.get(row):
            return
        self._said[row] = said
        for kept, value in self._values(sequence, drawn=True):
            kept.set(row, value)
        if self._edited is not None:
            self._edited.set(row, _edits(sequence))

    def move(self, source: int, target: int) -> None:
        """A row holds what another held."""
        said = self._said.get(source)
        if said is not None and said == self._said.get(target):
            return
        self._said[target] = said
        for kept in self._kept:
            kept.move(source, target)
        if self._edited is not None:
            self._edited.move(source, target)

    def lend(self, sequence: Sequence, *, drawn: bool) -> None:
        """Write it as the first row; as if nothing was asked where no token is `drawn`."""
        said = _all_said(sequence) if drawn else LIKELIEST
        if said is not None and said == self._said.get(0) and not self._changed:
            return
        for kept, value in self._values(sequence, drawn=drawn):
            kept.lend(value)
        if self._edited is not None:
            self._edited.lend(_edits(sequence) if drawn else None)

    def flush(self, rows: int) -> None:
        """Write what changed of the first rows."""
        self._changed.flush(rows)

    def make(self, made: NDArray[np.generic], tokens: Items[int]) -> None:
        """Each row has made a token: those made, and the same as `tokens`.

        Of constraints nothing follows yet: masks are asked for when they are needed.
        """
        if self._edited is not None:
            self._edited.make(made, tokens)

    def restrict(self, sequence: Sequence) -> None:
        """Write down what may come next of a sequence with a constraint, if it has a row."""
        if sequence.allowed is not None and self._knobs is not None and sequence.row >= 0:
            self._knobs.allowed.set(sequence.row, _bits(sequence.allowed))

    def reports(self, sequences: Iterable[Sequence]) -> tuple[str, ...]:
        """The outputs that say how likely tokens were, where one of the sequences asks."""
        asked = any(s.request.sampling.logprobs is not None for s in sequences)
        return self._knobs.outputs if self._knobs is not None and asked else ()

    def told(self, found: Mapping[str, NDArray[Any]], sequences: Items[Sequence]) -> list[Likely]:
        """How likely each row's token was, and the likeliest, where its sequence asks.

        Nothing at all where none does.
        """
        outputs = () if self._knobs is None else self._knobs.outputs
        if not outputs or outputs[0] not in found:
            return []
        asked = [sequence.request.sampling.logprobs for sequence in sequences]
        most = max((each for each in asked if each is not None), default=0)
        drawn, tokens, logprobs = (found[name][0, : len(asked)] for name in outputs)
        rows = zip(tokens[:, :most].tolist(), logprobs[:, :most].tolist(), strict=True)
        return [
            _UNTOLD if count is None else (own, tuple(zip(*row, strict=True))[:count])
            for count, own, row in zip(asked, drawn.tolist(), rows, strict=True)
        ]

    def _values(self, sequence: Sequence, *, drawn: bool) -> Iterator[tuple[Kept, Value]]:
        sampling = sequence.request.sampling if drawn else LIKELIEST
        for fill, entries in self._fills:
            yield entries, fill(sampling)
        if self._knobs is not None:
            yield from self._knobs.values(sequence, drawn=drawn)


class _KnobInputs:
    """What v7 has no fill for, by the names that the package's record gives."""

    def __init__(self, knobs: Knobs, take: Callable[[str], Input], changed: Changed) -> None:
        self._restricted = Entries(take(knobs.restricted), changed)
        self.allowed = Fronts(take(knobs.allowed), changed)
        self._report = Entries(take(knobs.report), changed)
        self.outputs = (knobs.logprob, knobs.top_token, knobs.top_logprob)
        self.kept: list[Kept] = [self._restricted, self.allowed, self._report]

    def values(self, sequence: Sequence, *, drawn: bool) -> Iterator[tuple[Kept, Value]]:
        """What each holds of a sequence; what nobody reads is left as it is."""
        allowed = sequence.allowed if drawn else None
        yield self._restricted, int(allowed is not None)
        yield self.allowed, _NONE if allowed is None else _bits(allowed)
        asked = sequence.request.sampling.logprobs if drawn else None
        yield self._report, -1 if asked is None else asked


def _all_said(sequence: Sequence) -> Sampling | None:
    """How the tokens of a sequence are drawn, where that is all there is to say."""
    more = sequence.edits is not None or sequence.allowed is not None
    return None if more else sequence.request.sampling


def _edits(sequence: Sequence) -> Edits | None:
    """The edits of a sequence after all that it has made."""
    edits = sequence.edits
    if edits is not None:
        for token in sequence.tokens[sequence.prompt + edits.counted :]:
            edits.make(token)
    return edits


def _bits(allowed: NDArray[np.uint32]) -> NDArray[np.int32]:
    return np.ascontiguousarray(allowed, np.uint32).view(np.int32)
