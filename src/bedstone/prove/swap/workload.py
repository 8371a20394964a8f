"""What both sides are driven with: a pure function of the protocol, its limits and a seed.

A short sequence is fed from its first token. A long one need not be: its table names full pages of
short ones over and over, in a drawn order, and only its last pages are its own. So the end of a
context costs no more than the rows that are fed there. Own pages are shuffled, and tokens are
drawn, not predicted, so nothing depends on what A computes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bedstone.errors import CallerError
from bedstone.prove.swap.lengths import far_ends, far_start, prompt_lengths
from bedstone.runtime.inputs import Feed
from bedstone.runtime.lease import Lease
from bedstone.verify.protocol import Chain, Protocol, Shape

_PAGE = 32
"""Tokens of a page where no table has any."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One call: the feeds of its sequences, its vars; a chain has what it goes on from instead.

    `opens` are the slots of sequences that begin here, `longest` is the length of the longest
    sequence once the call's rows are in.
    """

    program: str
    feeds: tuple[Feed, ...]
    leases: tuple[Lease, ...]
    vars: dict[str, int]
    longest: int
    opens: tuple[int, ...] = ()
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


def workload(protocol: Protocol, limits: Limits, seed: int) -> tuple[Turn, ...]:
    """The turns that drive every program of the protocol.

    Raises `CallerError`: no program takes one sequence.
    """
    return tuple(_Planner(protocol, limits, np.random.default_rng(seed)).turns())


def capacity(protocol: Protocol, limits: Limits) -> tuple[int, int]:
    """Tokens and sequences that a session has to hold for the workload."""
    unit, stays = _unit(protocol), _stays(protocol, limits)
    return sum(stay.pages(unit) for stay in stays) * unit, len(stays)


@dataclass(frozen=True, slots=True)
class _Stay:
    """A sequence to come: what it borrows up to `start`, its prompt's length, the most it has."""

    start: int
    length: int
    end: int

    def pages(self, unit: int) -> int:
        """Pages of its own."""
        return -(-self.end // unit) - self.start // unit


def _unit(protocol: Protocol) -> int:
    return protocol.page_tokens or _PAGE


def _stays(protocol: Protocol, limits: Limits) -> list[_Stay]:
    """Short ones, long ones, and as many more as fill the largest step."""
    unit, reach = _unit(protocol), limits.reach
    after = 2 * (1 + len(protocol.chains))
    found = [
        _Stay(0, length, min(length + after, reach))
        for length in prompt_lengths(unit, protocol.rows.max, reach)
    ]
    found += [_Stay(far_start(unit, end), end, end) for end in far_ends(unit, reach)]
    whole = reach // unit
    for at in range(protocol.groups.max - len(found)):
        start = 7 * at % max(whole, 1) * unit
        found.append(_Stay(start, start, min(start + unit, reach)))
    return found


@dataclass(slots=True)
class _Sequence:
    lease: Lease
    stay: _Stay
    length: int
    opened: bool = False


class _Planner:
    def __init__(self, protocol: Protocol, limits: Limits, random: np.random.Generator) -> None:
        self._protocol, self._limits, self._random = protocol, limits, random
        step = protocol.step() or protocol.chunk
        if step is None:
            raise CallerError("no program takes one sequence: nothing can be driven")
        self._step, self._chunk = step, protocol.chunk or step

    def turns(self) -> Iterator[Turn]:
        sequences = self._sequences()
        for sequence in sequences:
            yield from self._prompt(sequence)
            if sequence.stay.start == 0:
                yield from self._on(self._step, [sequence])
            elif sequence.length > sequence.stay.start:
                yield from self._at_the_end(sequence)
        yield from self._together(sequences)

    def _at_the_end(self, sequence: _Sequence) -> Iterator[Turn]:
        """A step, and each chain, whose row is the last that the sequence may have."""
        yield from self._on(self._step, [_back(sequence, 1)], chains=())
        for chain in self._follow(self._step, 1):
            yield from self._on(self._step, [_back(sequence, 2)], chains=(chain,))

    def _together(self, sequences: Sequence[_Sequence]) -> Iterator[Turn]:
        """Steps of two sequences, and of as many as a step takes.

        The longest is second, then first, then last.
        """
        far = [s for s in sequences if s.length > s.stay.start > 0]
        near = [s for s in sequences if s not in far]
        # a short one first, then the longest
        order = [*near[1:2], *reversed(far), *near[:1], *near[2:]]
        most = min(len(order), self._protocol.groups.max)
        for count in sorted({2, most}):
            shape = self._protocol.step(count) if 1 < count <= most else None
            if shape is not None:
                moves = 1 + len(self._follow(shape, count))
                yield from self._on(shape, [_back(s, moves) for s in order[:count]])
                for shift in range(1, min(count, 3)):
                    turned = (*order[shift:count], *order[:shift])
                    yield from self._on(shape, [_back(s, 1) for s in turned], chains=())

    def _prompt(self, sequence: _Sequence) -> Iterator[Turn]:
        most = self._chunk.rows or self._protocol.rows.max
        while sequence.length < sequence.stay.length:
            rows = min(most, sequence.stay.length - sequence.length)
            yield self._turn(self._chunk, [sequence], rows)

    def _on(
        self,
        shape: Shape,
        sequences: Sequence[_Sequence],
        chains: tuple[Chain, ...] | None = None,
    ) -> Iterator[Turn]:
        """A row for each sequence, then what goes on from it, by default every chain."""
        following = self._follow(shape, len(sequences)) if chains is None else chains
        if all(s.length < s.stay.end for s in sequences):
            yield self._turn(shape, sequences, 1)
            for chain in following:
                yield from self._chain(chain, sequences)

    def _follow(self, seed: Shape, count: int) -> tuple[Chain, ...]:
        """The chains that go on from a step of so many sequences."""
        told = [name] if (name := self._protocol.groups.name) else []
        many = self._limits.many
        return self._protocol.follow(seed, count, lambda program: told if program in many else [])

    def _chain(self, chain: Chain, sequences: Sequence[_Sequence]) -> Iterator[Turn]:
        if all(s.length < s.stay.end for s in sequences):
            for sequence in sequences:
                sequence.length += 1
            leases = tuple(sequence.lease for sequence in sequences)
            longest, given = self._vars(sequences, 1)
            yield Turn(chain.program, (), leases, given, longest, chain=chain)

    def _turn(self, shape: Shape, sequences: Sequence[_Sequence], rows: int) -> Turn:
        feeds = tuple(Feed(self._tokens(rows), s.length, s.lease) for s in sequences)
        opens = tuple(s.lease.slot for s in sequences if not s.opened)
        for sequence in sequences:
            sequence.length += rows
            sequence.opened = True
        longest, given = self._vars(sequences, rows)
        leases = tuple(sequence.lease for sequence in sequences)
        return Turn(shape.program, feeds, leases, given, longest, opens)

    def _vars(self, sequences: Sequence[_Sequence], rows: int) -> tuple[int, dict[str, int]]:
        longest, count = max(sequence.length for sequence in sequences), len(sequences)
        return longest, self._protocol.call_vars(rows * count, count, longest=longest)

    def _tokens(self, rows: int) -> list[int]:
        return [int(token) for token in self._random.integers(self._limits.vocab, size=rows)]

    def _sequences(self) -> list[_Sequence]:
        unit, stays = _unit(self._protocol), _stays(self._protocol, self._limits)
        total = sum(stay.pages(unit) for stay in stays)
        free = iter(int(page) for page in self._random.permutation(total))
        full: list[int] = []
        found = []
        for index, stay in enumerate(stays):
            own = [next(free) for _ in range(stay.pages(unit))]
            if stay.start == 0:
                full += own[: stay.length // unit]
            lent = self._random.choice(full, stay.start // unit).tolist() if stay.start else []
            lease = Lease((*lent, *own), unit, slot=index + 1)
            found.append(_Sequence(lease, stay, stay.start))
        return found


def _back(sequence: _Sequence, moves: int) -> _Sequence:
    """A sequence with room for so many more rows: where it has none, its last ones go again."""
    sequence.length = min(sequence.length, sequence.stay.end - moves)
    return sequence
