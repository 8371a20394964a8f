"""A's run with what went into each changed span and came out of it, as differences.

An image of all memory is kept once, in a shadow; each snapshot is the blocks that changed since the
one before it. Recording and replaying go through the snapshots in the same order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bedstone.prove.swap.diff import Diff, Span, programs_changed
from bedstone.prove.swap.drive import NAN, Bytes, Outcome, Side
from bedstone.prove.swap.image import Change, Shadow
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A span as A ran it in a turn: what changed before it since the last one, and what it did."""

    span: Span
    turn: int
    before: Change
    after: Change


@dataclass(slots=True)
class Record:
    """A's outcome, its snapshots in order, the programs that ran, and what loading left."""

    outcome: Outcome = field(default_factory=Outcome)
    snapshots: list[Snapshot] = field(default_factory=list)
    programs: set[str] = field(default_factory=set)
    loaded: Mapping[Region, Bytes] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes that the snapshots take."""
        return sum(
            blocks.nbytes
            for snapshot in self.snapshots
            for change in (snapshot.before, snapshot.after)
            for blocks in change.values()
        )


def record(side: Side, turns: Sequence[Turn], found: Diff) -> Record:
    """Drive A through the workload, keeping its spans."""
    kept = Record(loaded=side.loaded())
    shadow = Shadow(side.stepper.sizes)
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
        kept.outcome.strange += side.strange(turn)
    return kept


def kept_spans(spans: Sequence[Span], turn: int) -> Iterator[Span]:
    """The spans of a program to keep in a turn: of those alike one, another each turn."""
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Span]] = {}
    for span in spans:
        if not span.mismatch:
            alike.setdefault((span.a.ops, span.b.ops), []).append(span)
    chosen = {group[turn % len(group)].index for group in alike.values()}
    return (span for span in spans if span.index in chosen)
