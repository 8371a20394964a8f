"""A's run with what went into each changed span and came out of it, as differences.

An image of all memory is kept once, in a shadow; each snapshot is the blocks that changed since the
one before it, and lies in a file. Recording and replaying go through the snapshots in the same
order. All memory is looked at once a turn, and within it what the calls in between declare to
write: A is what is trusted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bedstone.prove.swap.diff import Diff, Span, programs_changed
from bedstone.prove.swap.drive import NAN, Bytes, Outcome, Side
from bedstone.prove.swap.image import Shadow
from bedstone.prove.swap.reach import Reach
from bedstone.prove.swap.reel import Piece, Reel
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A span as A ran it in a turn: what changed before it since the last one, and what it did."""

    span: Span
    turn: int
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


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
            piece.nbytes
            for snapshot in self.snapshots
            for piece in (*snapshot.before, *snapshot.after)
        )


def record(side: Side, turns: Sequence[Turn], found: Diff, reel: Reel) -> Record:
    """Drive A through the workload, keeping its spans."""
    kept = Record(loaded=side.loaded())
    shadow = Shadow(side.stepper.sizes)
    spans = programs_changed(found)
    reaches = {program: Reach(side.manifest, program) for program in spans}
    side.open(NAN)
    for index, turn in enumerate(turns):
        side.begin(turn, NAN)
        if turn.chain is not None:
            kept.outcome.carries[index] = side.carries(turn)
        kept.programs.add(turn.program)
        at = 0
        for span in kept_spans(spans.get(turn.program, ()), index):
            start, stop = span.a.start, span.a.stop
            reach = reaches[turn.program]
            side.stepper.run(turn.program, at, start, turn.vars)
            since = reach.written(at, start) if at else None
            before = reel.put(shadow.take(side.stepper, since))
            side.stepper.run(turn.program, start, stop, turn.vars)
            after = reel.put(shadow.take(side.stepper, reach.written(start, stop)))
            kept.snapshots.append(Snapshot(span, index, before, after))
            at = stop
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
