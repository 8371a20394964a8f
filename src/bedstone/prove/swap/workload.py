"""What both sides are driven with: a pure function of the protocol, the capacity and a seed.

Prompts have lengths at which kernels change their path: one token, around a page, around a chunk,
around the most rows a call takes. Each sequence has pages of its own, in a shuffled order, and
tokens are drawn, not predicted, so nothing depends on what A computes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bedstone.errors import CallerError
from bedstone.runtime.inputs import Feed
from bedstone.runtime.lease import Lease
from bedstone.verify.protocol import Chain, Protocol, Shape

_STEPS = 2
"""Single rows that follow each prompt."""

_TOGETHER = 2
"""Steps of several sequences at once, for each number of them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One call: the feeds of its sequences, its vars; a chain has what it goes on from instead.

    `opens` is the slot of a sequence that begins here.
    """

    program: str
    feeds: tuple[Feed, ...]
    leases: tuple[Lease, ...]
    vars: dict[str, int]
    opens: int | None = None
    chain: Chain | None = None

    @property
    def rows(self) -> int:
        """Rows of the call, all sequences together."""
        return sum(len(feed.tokens) for feed in self.feeds) or len(self.leases)


@dataclass(frozen=True, slots=True)
class Limits:
    """`reach` is the longest sequence in tokens, `vocab` the number of token ids.

    `many` are the programs that take as many sequences as a var says.
    """

    reach: int
    vocab: int
    many: frozenset[str] = frozenset()


def lengths(page: int, rows: int, most: int) -> tuple[int, ...]:
    """Prompt lengths on the structural edges that fit in `most` tokens, shortest first."""
    edges = {1, page - 1, page, page + 1, 2 * page + 1, rows - 1, rows, rows + 1}
    return tuple(sorted(length for length in edges if 1 <= length <= most))


def workload(protocol: Protocol, limits: Limits, seed: int) -> tuple[Turn, ...]:
    """The turns that drive every program of the protocol.

    Raises `CallerError`: no program takes one sequence.
    """
    return tuple(_Planner(protocol, limits, np.random.default_rng(seed)).turns())


def capacity(protocol: Protocol, limits: Limits) -> tuple[int, int]:
    """Tokens and sequences that a session has to hold for the workload."""
    unit = protocol.page_tokens or 1
    found = prompt_lengths(protocol, limits)
    margin = _margin(protocol)
    return sum(-(-(length + margin) // unit) for length in found) * unit, len(found)


def prompt_lengths(protocol: Protocol, limits: Limits) -> tuple[int, ...]:
    """One for each sequence of the workload, as many at least as a step takes at once."""
    most = limits.reach - _margin(protocol)
    found = lengths(protocol.page_tokens or 32, protocol.rows.max, max(1, most))
    spare = max(0, protocol.groups.max - len(found)) if protocol.groups.max <= 8 else 0
    return found + found[:1] * spare


def _margin(protocol: Protocol) -> int:
    """Rows that a sequence may take after its prompt."""
    return _STEPS + 2 * _TOGETHER + 3 * len(protocol.chains)


@dataclass(slots=True)
class _Sequence:
    lease: Lease
    length: int = 0


class _Planner:
    def __init__(self, protocol: Protocol, limits: Limits, random: np.random.Generator) -> None:
        self._protocol, self._limits, self._random = protocol, limits, random
        step = protocol.step() or protocol.chunk
        if step is None:
            raise CallerError("no program takes one sequence: nothing can be driven")
        self._step, self._chunk = step, protocol.chunk or step

    def turns(self) -> Iterator[Turn]:
        found = prompt_lengths(self._protocol, self._limits)
        sequences = [_Sequence(lease) for lease in self._leases(found)]
        for sequence, length in zip(sequences, found, strict=True):
            yield from self._prompt(sequence, length)
            for _ in range(_STEPS):
                yield self._turn(self._step, [sequence], 1)
            yield from self._chains(self._step, [sequence])
        yield from self._together(sequences)

    def _together(self, sequences: Sequence[_Sequence]) -> Iterator[Turn]:
        """Steps of two sequences, and of as many as a step takes."""
        most = min(len(sequences), self._protocol.groups.max)
        for count in sorted({2, most}):
            shape = self._protocol.step(count) if 1 < count <= most else None
            if shape is not None:
                for _ in range(_TOGETHER):
                    yield self._turn(shape, sequences[:count], 1)
                yield from self._chains(shape, sequences[:count])

    def _prompt(self, sequence: _Sequence, length: int) -> Iterator[Turn]:
        most = self._chunk.rows or self._protocol.rows.max
        opens: int | None = sequence.lease.slot
        while sequence.length < length:
            rows = min(most, length - sequence.length)
            yield self._turn(self._chunk, [sequence], rows, opens)
            opens = None

    def _turn(
        self, shape: Shape, sequences: Sequence[_Sequence], rows: int, opens: int | None = None
    ) -> Turn:
        feeds = [Feed(self._tokens(rows), s.length, s.lease) for s in sequences]
        for sequence in sequences:
            sequence.length += rows
        longest = max(sequence.length for sequence in sequences)
        given = self._protocol.call_vars(rows * len(feeds), len(feeds), longest=longest)
        leases = tuple(sequence.lease for sequence in sequences)
        return Turn(shape.program, tuple(feeds), leases, given, opens)

    def _chains(self, seed: Shape, sequences: Sequence[_Sequence]) -> Iterator[Turn]:
        for chain in self._protocol.chains:
            alone = chain.program not in self._limits.many
            if seed.program in chain.seeds and (len(sequences) == 1 or not alone):
                for sequence in sequences:
                    sequence.length += 1
                longest = max(sequence.length for sequence in sequences)
                count = len(sequences)
                given = self._protocol.call_vars(count, count, longest=longest)
                leases = tuple(sequence.lease for sequence in sequences)
                yield Turn(chain.program, (), leases, given, chain=chain)

    def _tokens(self, rows: int) -> list[int]:
        return [int(token) for token in self._random.integers(self._limits.vocab, size=rows)]

    def _leases(self, found: Sequence[int]) -> list[Lease]:
        unit = self._protocol.page_tokens or 1
        counts = [-(-(length + _margin(self._protocol)) // unit) for length in found]
        pages = [int(page) for page in self._random.permutation(sum(counts))]
        ends = list(accumulate(counts))
        return [
            Lease(tuple(pages[end - count : end]), unit, slot=index + 1)
            for index, (count, end) in enumerate(zip(counts, ends, strict=True))
        ]
