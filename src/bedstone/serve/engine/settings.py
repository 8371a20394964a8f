"""How each row's token is drawn, as the inputs of a sampler hold it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.ports import Input
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
        changed: Changed,
    ) -> None:
        self._fills = [
            (fill, Entries(take(role.buffer), changed))
            for role in protocol.roles
            if (fill := _FILLS.get(role.fill)) is not None and role.over == "groups"
        ]
        self.knobs = None if knobs is None else _KnobInputs(knobs, take, changed)
        self.kept: list[Kept] = [entries for _, entries in self._fills]
        self.kept += [] if self.knobs is None else self.knobs.kept

    def seat(self, sequence: Sequence) -> None:
        """Write down how the tokens of a sequence with a row are drawn."""
        for entries, value in self._values(sequence, drawn=True):
            entries.set(sequence.row, value)

    def lend(self, sequence: Sequence, *, drawn: bool) -> None:
        """Write it as the first row; as if nothing was asked where no token is `drawn`."""
        for entries, value in self._values(sequence, drawn=drawn):
            entries.lend(value)

    def after(self, made: Items[tuple[Sequence, int]]) -> None:
        """Sequences have made a token each: what changes of the rows of those that have one.

        Of their constraints nothing yet: masks are asked for when they are needed.
        """
        changed = [
            (sequence.row, *sequence.edits.make(token))
            for sequence, token in made
            if sequence.edits is not None
        ]
        changed = [each for each in changed if each[0] >= 0]
        if changed and self.knobs is not None:
            self.knobs.edit(changed)

    def restrict(self, sequence: Sequence) -> None:
        """Write down what may come next of a sequence with a constraint, if it has a row."""
        if sequence.allowed is not None and self.knobs is not None and sequence.row >= 0:
            self.knobs.allowed.set(sequence.row, _bits(sequence.allowed))

    def reports(self, sequences: Iterable[Sequence]) -> tuple[str, ...]:
        """The outputs that say how likely tokens were, where one of the sequences asks."""
        asked = any(s.request.sampling.logprobs is not None for s in sequences)
        return self.knobs.outputs if self.knobs is not None and asked else ()

    def told(
        self, found: Mapping[str, NDArray[Any]], sequences: Items[Sequence]
    ) -> Iterable[Likely]:
        """How likely each row's token was, and the likeliest, where its sequence asks."""
        outputs = () if self.knobs is None else self.knobs.outputs
        if not outputs or outputs[0] not in found:
            return [_UNTOLD] * len(sequences)
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
        if self.knobs is not None:
            yield from self.knobs.values(sequence, drawn=drawn)


class _KnobInputs:
    """What v7 has no fill for, by the names that the package's record gives."""

    def __init__(self, knobs: Knobs, take: Callable[[str], Input], changed: Changed) -> None:
        self._edits = Entries(take(knobs.edits), changed)
        self._edited = tuple(
            Fronts(take(name), changed)
            for name in (knobs.edit_token, knobs.edit_scale, knobs.edit_add)
        )
        self._restricted = Entries(take(knobs.restricted), changed)
        self.allowed = Fronts(take(knobs.allowed), changed)
        self._report = Entries(take(knobs.report), changed)
        self.outputs = (knobs.logprob, knobs.top_token, knobs.top_logprob)
        self.kept: list[Kept] = [
            self._edits,
            *self._edited,
            self._restricted,
            self.allowed,
            self._report,
        ]

    def values(self, sequence: Sequence, *, drawn: bool) -> Iterator[tuple[Kept, Value]]:
        """What each holds of a sequence; what nobody reads is left as it is."""
        edits = sequence.edits if drawn else None
        count = 0 if edits is None else edits.count
        yield self._edits, count
        columns = (_NONE,) * 3 if edits is None else (edits.tokens, edits.scales, edits.adds)
        for fronts, column in zip(self._edited, columns, strict=True):
            yield fronts, column[:count]
        allowed = sequence.allowed if drawn else None
        yield self._restricted, int(allowed is not None)
        yield self.allowed, _NONE if allowed is None else _bits(allowed)
        asked = sequence.request.sampling.logprobs if drawn else None
        yield self._report, -1 if asked is None else asked

    def edit(self, changed: Items[tuple[int, int, int, float, float]]) -> None:
        """Of each of some rows one edit is another: row, which, token, how it scales and adds."""
        rows, entries, *values = (np.array(each) for each in zip(*changed, strict=True))
        self._edits.set_each(rows, np.maximum(self._edits.of(rows), entries + 1))
        for fronts, each in zip(self._edited, values, strict=True):
            fronts.poke(rows, entries, each)


def _bits(allowed: NDArray[np.uint32]) -> NDArray[np.int32]:
    return np.ascontiguousarray(allowed, np.uint32).view(np.int32)
