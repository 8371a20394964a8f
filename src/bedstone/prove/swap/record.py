"""A's run with what went into each changed span and came out of it, as differences.

An image of all memory is kept once, in a shadow; each snapshot is the blocks that changed since the
one before it. Recording and replaying go through the snapshots in the same order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bedstone.prove.swap.diff import Diff, Span, programs_changed
from bedstone.prove.swap.drive import NAN, Bytes, Outcome, Side
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region
from bedstone.runtime.stepper import Stepper

BLOCK = 64
"""Bytes that are kept or compared as one."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of a region: their indices [n] and bytes [n, BLOCK]."""

    at: NDArray[np.intp]
    data: Bytes


Change = Mapping[Region, Blocks]


class Shadow:
    """Every region's bytes as of the last snapshot, each as blocks [n, BLOCK], zero padded."""

    def __init__(self, stepper: Stepper) -> None:
        self.blocks: dict[Region, Bytes] = {
            region: np.zeros((-(-memory.nbytes // BLOCK), BLOCK), np.uint8)
            for region, memory in stepper.regions.items()
        }

    def take(self, stepper: Stepper) -> Change:
        """Bring the shadow up to date; what changed."""
        changes: dict[Region, Blocks] = {}
        for region, held in self.blocks.items():
            now = blocked(stepper.read(region))
            at = changed_blocks(held, now)
            if at.size:
                changes[region] = Blocks(at, now[at])
                held[at] = now[at]
        return changes

    def put(self, change: Change) -> None:
        """Bring the shadow to a later snapshot."""
        for region, blocks in change.items():
            self.blocks[region][blocks.at] = blocks.data


def blocked(data: Bytes) -> Bytes:
    """Bytes [n] as blocks, the last one padded with zeros."""
    short = -data.size % BLOCK
    return (np.pad(data, (0, short)) if short else data).reshape(-1, BLOCK)


def changed_blocks(before: Bytes, after: Bytes) -> NDArray[np.intp]:
    """Indices of blocks that differ."""
    words = before.view(np.uint64) != after.view(np.uint64)
    return np.flatnonzero(words.any(axis=1))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A span as A ran it in a turn: what changed before it since the last one, and what it did."""

    span: Span
    turn: int
    before: Change
    after: Change


@dataclass(slots=True)
class Record:
    """A's outcome, its snapshots in order, and the programs that ran."""

    outcome: Outcome = field(default_factory=Outcome)
    snapshots: list[Snapshot] = field(default_factory=list)
    programs: set[str] = field(default_factory=set)

    @property
    def nbytes(self) -> int:
        """Bytes that the snapshots take."""
        return sum(
            blocks.data.nbytes
            for snapshot in self.snapshots
            for change in (snapshot.before, snapshot.after)
            for blocks in change.values()
        )


def record(side: Side, turns: Sequence[Turn], found: Diff) -> Record:
    """Drive A through the workload, keeping its spans."""
    kept = Record()
    shadow = Shadow(side.stepper)
    spans = programs_changed(found)
    side.open(NAN)
    for index, turn in enumerate(turns):
        side.begin(turn, NAN)
        if turn.chain is not None:
            kept.outcome.carries[index] = side.carries(turn)
        kept.programs.add(turn.program)
        at = 0
        for span in kept_spans(spans.get(turn.program, ()), index):
            side.stepper.run(turn.program, at, span.a.start, turn.vars)
            before = shadow.take(side.stepper)
            side.stepper.run(turn.program, span.a.start, span.a.stop, turn.vars)
            after = shadow.take(side.stepper)
            kept.snapshots.append(Snapshot(span, index, before, after))
            at = span.a.stop
        side.stepper.run(turn.program, at, side.calls(turn.program), turn.vars)
        kept.outcome.logits.append(side.logits(turn))
    return kept


def kept_spans(spans: Sequence[Span], turn: int) -> Iterator[Span]:
    """The spans of a program to keep in a turn: of those alike, the first and one other in turn."""
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Span]] = {}
    for span in spans:
        if not span.mismatch:
            alike.setdefault((span.a.ops, span.b.ops), []).append(span)
    chosen = {
        each.index for group in alike.values() for each in (group[0], group[turn % len(group)])
    }
    return (span for span in spans if span.index in chosen)
