"""How the tokens of sequences are drawn, where one caller drives them: what goes into a sampler."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.runtime.edits import Edits, edits_anything
from bedstone.runtime.executor import Executor
from bedstone.spec.sampling import Knobs, Sampling
from bedstone.verify.protocol import Protocol


class Drawing:
    """How one sequence's tokens are drawn, as its tokens come."""

    __slots__ = ("edits", "sampling")

    def __init__(self, sampling: Sampling, edits: Edits | None = None) -> None:
        self.sampling = sampling
        self.edits = edits

    @property
    def chains(self) -> bool:
        """Whether steps can follow each other with nothing from the host in between."""
        return self.edits is None

    def read(self, tokens: Iterable[int]) -> None:
        """The sequence was given tokens."""
        if self.edits is not None:
            for token in tokens:
                self.edits.read(token)

    def make(self, tokens: Iterable[int]) -> None:
        """The sequence has made tokens."""
        if self.edits is not None:
            for token in tokens:
                self.edits.make(token)


def drawing(session: Executor, protocol: Protocol, sampling: Sampling) -> Drawing:
    """How tokens are drawn that are asked for so.

    Raises `CallerError`: the package takes the likeliest token and nothing else, or its sampler
    edits no logits, or log-probabilities are asked for, which only an engine tells.
    """
    if sampling.logprobs is not None:
        raise CallerError("log-probabilities are told by `bedstone.serve`, and not here")
    if sampling.temperature > 0 and protocol.role("temperature") is None:
        raise CallerError("the package takes the likeliest tokens: compile it with `--sampler`")
    if not edits_anything(sampling):
        return Drawing(sampling)
    if session.knobs is None:
        raise CallerError("the package edits no logits: compile it with `--sampler`")
    width = session.manifest.buffers[session.knobs.edit_token].shape[1]
    return Drawing(sampling, Edits(sampling, int(width)))


def knob_inputs(
    knobs: Knobs | None, drawings: Sequence[Drawing]
) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Each input of a sampler that has no fill, with what goes to its front for these sequences."""
    if knobs is None:
        return
    rows = [drawing.edits for drawing in drawings]
    counts = [0 if row is None else row.count for row in rows]
    yield knobs.edits, np.array(counts, np.int32)
    # a sequence without edits has a row too, which nobody reads
    given = next((row for row in rows if row is not None), None)
    lists = (knobs.edit_token, knobs.edit_scale, knobs.edit_add)
    for name, of in zip(lists, ("tokens", "scales", "adds"), strict=True):
        if given is not None:
            *full, last = [getattr(row or given, of) for row in rows]
            yield name, np.concatenate([*full, last[: counts[-1]]])
    yield knobs.restricted, np.zeros(len(rows), np.int32)
    yield knobs.report, np.full(len(rows), -1, np.int32)
