"""B's spans run from A's inputs and state, and held against what A left."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.prove.swap.diff import Diff, Span
from bedstone.prove.swap.diff import Side as Stretch
from bedstone.prove.swap.drive import Bytes, Side
from bedstone.prove.swap.frontier import Place
from bedstone.prove.swap.image import BLOCK, Change, Indices, Shadow, blocked, write_blocks
from bedstone.prove.swap.measure import Distance, distance, near, worst
from bedstone.prove.swap.reach import region_of
from bedstone.prove.swap.record import Record
from bedstone.prove.swap.reel import Reel
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region
from bedstone.spec.dtype import DType

_SMALL = 4096
_ALIKE = 0.1
"""The most that a value may be off, in root mean squares of its block, to be the same one."""

_FLOATS = frozenset({"f32", "f16", "bf16", "fp8e4m3", "fp8e8m0"})
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SpanResult:
    """A span of a turn, or of loading: what B wrote against A's.

    `numbers` are floats, and codes of them, `exact` integers that others act on; `outside` counts
    bytes written where A writes none, `strays` names their regions. `states` has the distance of
    each state by its name: where a span is many layers long, that is how far B is from A after
    each of them. `lasting` are the float32 of a program of loading, made of nothing that was coded.
    """

    span: Span
    turn: int | None
    numbers: Distance
    exact: Distance
    outside: int
    strays: tuple[str, ...]
    states: tuple[tuple[str, Distance], ...] = ()
    lasting: Distance = field(default_factory=Distance)


class Own(Protocol):
    """A again, and what its memory is before a span of it runs."""

    def prepare(self, program: str, stretch: Stretch) -> Collection[Region] | None:
        """Change memory, if at all; the regions to look at afterwards, None for all."""


class Alike:
    """A again, as it was."""

    def prepare(self, _program: str, _stretch: Stretch) -> None:
        """Nothing changes."""


@dataclass(frozen=True, slots=True)
class _Ran:
    """A span of a turn, and what A changed in it."""

    span: Span
    turn: int
    after: Change


def replay(
    side: Side,
    turns: Sequence[Turn],
    record: Record,
    shadow: Shadow,
    reel: Reel,
    own: Own | None = None,
) -> Iterator[SpanResult]:
    """Run each snapshot's span on a side.

    `shadow` holds zeros, as when the record began. `own` is given where the side is A again.
    """
    stray = shadow.differing(side.stepper)
    for snapshot in record.snapshots:
        before, after = (reel.get(pieces) for pieces in (snapshot.before, snapshot.after))
        shadow.put(before)
        _restore(side, shadow, _with(stray, before))
        gaps = side.stepper.between()
        stretch = snapshot.span.a if own else snapshot.span.b
        turn = turns[snapshot.turn]
        reach = own.prepare(turn.program, stretch) if own else None
        side.stepper.run(turn.program, stretch.start, stretch.stop, turn.vars)
        changed = shadow.differing(side.stepper, reach)
        shadow.put(after)
        outside = sum(x != y for x, y in zip(gaps, side.stepper.between(), strict=True))
        stray = _with(changed, after)
        yield _result(side, _Ran(snapshot.span, snapshot.turn, after), shadow, stray, outside)


def loaded(side: Side, found: Diff, record: Record) -> Iterator[SpanResult]:
    """What spans of programs of loading left, where it lasts and is no weight."""
    for span in found.spans:
        program = side.manifest.programs[span.program]
        regions = {region_of(place) for place in span.a.frontier.writes}
        known = regions <= record.loaded.keys() & side.stepper.regions.keys()
        if (program.once or program.derive) and known and not span.mismatch:
            pairs = [(r, record.loaded[r], side.stepper.read(r)) for r in sorted(regions, key=str)]
            of = {
                measured: worst(
                    distance(a, b, dtype_of(side, region))
                    for region, a, b in pairs
                    if _measured(side, region) is measured
                )
                for measured in (True, False)
            }
            fine = (distance(a, b, "f32") for r, a, b in pairs if dtype_of(side, r) == "f32")
            lasting = worst(fine)
            yield SpanResult(span, None, of[True], of[False], 0, (), lasting=lasting)


Touched = dict[Region, Indices]


def _with(touched: Touched, change: Change) -> Touched:
    """Blocks that were touched, or that a change names, in ascending order."""
    return {
        region: _union(at, change[region].at) if region in change else at
        for region, at in touched.items()
    }


def _union(one: Indices, other: Indices) -> Indices:
    return np.union1d(one, other) if one.size else np.sort(other)


def _restore(side: Side, shadow: Shadow, touched: Touched) -> None:
    """Make memory what the shadow says; it is but for the blocks that were touched."""
    for region, at in touched.items():
        if at.size:
            write_blocks(side.stepper, region, shadow.blocks[region], at)


def _result(side: Side, ran: _Ran, shadow: Shadow, touched: Touched, gaps: int) -> SpanResult:
    numbers: list[Distance] = []
    exact: list[Distance] = []
    states: list[tuple[str, Distance]] = []
    strays: list[str] = ["memory between regions"] if gaps else []
    outside = gaps
    for region, at in touched.items():
        if region.kind == "scratch" or not (at.size or _small(ran, shadow, region)):
            continue
        held, now = shadow.blocks[region], blocked(side.stepper.view(region))
        differs = _marked(at[(held[at] != now[at]).any(axis=1)], len(held))
        compared, astray = _masks(ran, region, len(held), differs)
        if region.kind == "state":
            again = _written_again(held, now, astray, dtype_of(side, region))
            compared, astray = compared | again, astray & ~again
        beyond = int((held[astray] != now[astray]).sum())
        outside += beyond
        strays += [str(region)] * bool(beyond)
        owners = _owners(ran.span.a, region, len(held))
        for owner in np.unique(owners[compared]):
            each = compared & (owners == owner)
            pair = held[each].reshape(-1), now[each].reshape(-1)
            found = distance(*pair, dtype_of(side, region))
            (numbers if _measured(side, region) else exact).append(found)
            if region.kind == "state":
                states.append((region.name, found))
    return SpanResult(
        ran.span,
        ran.turn,
        worst(numbers),
        worst(exact),
        outside,
        tuple(strays),
        tuple(states),
    )


def _small(ran: _Ran, shadow: Shadow, region: Region) -> bool:
    """Whether all of a region counts: a small result may well be what it was before."""
    known = ran.span.a.frontier.writes
    return len(shadow.blocks[region]) * BLOCK <= _SMALL and any(_is(p, region) for p in known)


def _masks(ran: _Ran, region: Region, count: int, differs: Mask) -> tuple[Mask, Mask]:
    """Of `count` blocks those to compare, and those that B changed where it should not have."""
    span = ran.span
    after = ran.after.get(region)
    changed = _marked(after.at if after else np.zeros(0, np.int32), count)
    known = span.a.frontier.writes
    lives = _owned(span.a, region, count, known | span.b.frontier.written)
    compared = changed & lives
    if count * BLOCK <= _SMALL and any(_is(place, region) for place in known):
        # a small result may well be what it was before: all of it counts
        compared = np.ones(count, np.bool_)
    private = _owned(span.b, region, count, span.b.frontier.written - known) & ~lives
    return compared, differs & ~compared & ~changed & ~private


def _written_again(held: Bytes, now: Bytes, astray: Mask, dtype: DType) -> Mask:
    """Of the blocks that only B changed, those that are nearly what they were.

    A step past a sequence's end repeats one, and a first layer then gives what is there to the bit:
    A wrote it all the same.
    """
    found = astray.copy()
    found[astray] = near(held[astray], now[astray], dtype, _ALIKE)
    return found


def _marked(at: Indices, count: int) -> Mask:
    mask = np.zeros(count, np.bool_)
    mask[at] = True
    return mask


def _owned(stretch: Stretch, region: Region, count: int, wanted: frozenset[Place]) -> Mask:
    """Blocks after one of the `wanted` places and before the next place that is written."""
    good = np.array([False, *(place in wanted for place in _places(stretch, region))])
    return np.asarray(good[_owners(stretch, region, count)])


def _owners(stretch: Stretch, region: Region, count: int) -> NDArray[np.intp]:
    """For each of `count` blocks, how many places that the stretch writes begin at or before it."""
    starts = np.array([place.offset for place in _places(stretch, region)], np.intp)
    return np.searchsorted(starts // BLOCK, np.arange(count), "right")


def _places(stretch: Stretch, region: Region) -> list[Place]:
    return sorted(place for place in stretch.frontier.written if _is(place, region))


def _is(place: Place, region: Region) -> bool:
    return (place.kind, place.name) == (region.kind, region.name)


def _measured(side: Side, region: Region) -> bool:
    """Whether errors count by their size; integers that others act on, as tokens, are exact."""
    buffer = side.manifest.buffers.get(region.name) if region.kind == "buffer" else None
    return buffer is None or buffer.dtype in _FLOATS or buffer.kind == "workspace"


def dtype_of(side: Side, region: Region) -> DType:
    """A buffer's element type; a state declares none: what is no cache holds float32."""
    if region.kind == "buffer":
        return side.manifest.buffers[region.name].dtype
    paged = region.kind == "state" and side.manifest.states[region.name].bytes_per_token
    return side.cached if paged else "f32"
