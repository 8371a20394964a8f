"""The calls that take prompts on: a piece of each of some sequences in one."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bedstone.pool import Lease
from bedstone.runtime.ports import Input
from bedstone.serve.engine.abilities import Abilities
from bedstone.serve.engine.calls import Calls, Flight, Sizes
from bedstone.serve.engine.sequence import Sequence
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Fill
from bedstone.verify.protocol import Role, Shape


class Piece(Frozen):
    """Tokens of a sequence that go in from position `start` on, with pages of `unit` tokens."""

    tokens: Items[int]
    start: int
    pages: Items[int]
    unit: int

    @property
    def stop(self) -> int:
        """How long the sequence is once they are in."""
        return self.start + len(self.tokens)

    @property
    def at(self) -> NDArray[np.int32]:
        """Their positions."""
        return np.arange(self.start, self.stop, dtype=np.int32)


Between = tuple[Items[int] | NDArray[np.int32], int, int]
"""Numbers, none less or greater than two others."""

_How = Callable[[Role, Piece], Between]
_OF_PIECE: Mapping[Fill, _How] = {
    "token": lambda role, piece: _tokens(role, piece.tokens),
    "position": lambda _, piece: (piece.at, piece.start, piece.stop - 1),
    "seq_len": lambda _, piece: ((piece.stop,), piece.stop, piece.stop),
    "slot": lambda _, piece: _slots(piece),
}


class Pieces:
    """Starts them; `fed_tokens` of prompts went in so far."""

    def __init__(self, calls: Calls, able: Abilities, unit: int) -> None:
        self.fed_tokens = 0
        self._calls = calls
        self._able = able
        self._unit = unit
        self._inputs = cache(self._inputs_of)

    def start(self, shape: Shape, pieces: Items[tuple[Sequence, int]]) -> Flight:
        """Start a call that takes the next so many tokens of each sequence.

        How its tokens are drawn is said of a single one only.
        """
        calls, counts = self._calls, tuple(count for _, count in pieces)
        told = tuple(s for s, count in pieces if s.left == count and shape.emits is not None)
        if len(pieces) == 1:
            calls.settings.lend(pieces[0][0], drawn=bool(told))
        parts = [self._part(shape, *piece) for piece in pieces]
        real, width = sum(len(part.tokens) for part in parts), self._able.width(shape, len(parts))
        leases: list[Lease | None] = [sequence.lease for sequence, _ in pieces]
        if nobodys := width - len(parts):
            leases += [None] * nobodys
            parts += [self._nobodys(shape)] * nobodys
        calls.lend(leases)
        lengths = tuple(len(part.tokens) for part in parts) if len(parts) > 1 else ()
        rows = sum(lengths) if lengths else real
        calls.lay(Sizes(shape.program, rows, width, real, lengths))
        for target, role, how in self._inputs(shape.program):
            target.put_between(*_joined([how(role, part) for part in parts]))
        self.fed_tokens += sum(counts)
        given = calls.given(rows, width, max(part.stop for part in parts))
        return calls.start(shape, tuple(s for s, _ in pieces), told, counts, given)

    def _part(self, shape: Shape, sequence: Sequence, count: int) -> Piece:
        """What goes in of a sequence: of a round its next token in each row."""
        start, lease = sequence.fed, sequence.lease
        tokens = sequence.tokens[start : start + count]
        tokens = tokens * (shape.rows or 1) if shape.is_round else tokens
        return Piece(tokens, start, lease.pages if lease else (), self._unit)

    def _nobodys(self, shape: Shape) -> Piece:
        """What goes into the rows of a sequence that is not there."""
        rows = shape.rows or 1
        return Piece((0,) * rows, 0, (self._calls.pad,) * -(-rows // self._unit), self._unit)

    def _inputs_of(self, program: str) -> list[tuple[Input, Role, _How]]:
        """The inputs of a program that are others with each piece."""
        return [
            (target, role, how)
            for target, role in self._calls.inputs_of(program)
            if (how := _OF_PIECE.get(role.fill)) is not None
        ]


def _joined(parts: Items[Between]) -> Between:
    """Those of several sequences, one after the other."""
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([np.asarray(part[0], np.int32) for part in parts])
    return values, min(low for _, low, _ in parts), max(high for _, _, high in parts)


def _tokens(role: Role, tokens: Items[int]) -> Between:
    # one for each sequence is the first of its tokens
    some = tokens[:1] if role.over == "groups" else tokens
    return some, min(some), max(some)


def _slots(piece: Piece) -> Between:
    """Where a piece lies in the paged states."""
    start, stop, unit = piece.start, piece.stop, piece.unit
    if not piece.pages:
        return piece.at, start, stop - 1
    first = start // unit
    pages = piece.pages[first : (stop - 1) // unit + 1]
    slots = piece.at
    for place, page in enumerate(pages, first):
        # those of a page lie as far above their positions as it does above its place
        slots[max(0, place * unit - start) : (place + 1) * unit - start] += (page - place) * unit
    return slots, min(pages) * unit, (max(pages) + 1) * unit - 1
