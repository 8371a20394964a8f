"""B's spans run from A's inputs and state, and held against what A left."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.prove.swap.diff import Side as Stretch
from bedstone.prove.swap.diff import Span
from bedstone.prove.swap.drive import Bytes, Side
from bedstone.prove.swap.frontier import Place
from bedstone.prove.swap.measure import Distance, distance, worst
from bedstone.prove.swap.record import BLOCK, Change, Record, Shadow, Snapshot, blocked
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region
from bedstone.spec.dtype import DType

_SMALL = 4096
_FLOATS = frozenset({"f32", "f16", "bf16", "fp8e4m3", "fp8e8m0"})
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SpanResult:
    """A span of a turn: floats and integers against A's, bytes written where A writes none.

    `strays` names the regions of those.
    """

    span: Span
    turn: int
    floats: Distance
    integers: Distance
    outside: int
    strays: tuple[str, ...]


def replay(
    side: Side, turns: Sequence[Turn], record: Record, shadow: Shadow, *, own: bool = False
) -> Iterator[SpanResult]:
    """Run each snapshot's span on a side; `own` says that it is A again, for the noise floor.

    `shadow` holds zeros, as when the record began.
    """
    for snapshot in record.snapshots:
        shadow.put(snapshot.before)
        _restore(side, shadow)
        gaps = side.stepper.between()
        stretch = snapshot.span.a if own else snapshot.span.b
        turn = turns[snapshot.turn]
        side.stepper.run(turn.program, stretch.start, stretch.stop, turn.vars)
        now = {region: side.stepper.read(region) for region in side.stepper.regions}
        shadow.put(snapshot.after)
        outside = sum(x != y for x, y in zip(gaps, side.stepper.between(), strict=True))
        yield _result(side, snapshot, shadow.blocks, now, outside)


def _restore(side: Side, shadow: Shadow) -> None:
    for region, memory in side.stepper.regions.items():
        held = shadow.blocks.get(region)
        if held is not None and len(held) == -(-memory.nbytes // BLOCK):
            side.stepper.write(region, held.reshape(-1)[: memory.nbytes])


def _result(
    side: Side,
    snapshot: Snapshot,
    expected: Mapping[Region, Bytes],
    found: Mapping[Region, Bytes],
    gaps: int,
) -> SpanResult:
    floats: list[Distance] = []
    integers: list[Distance] = []
    strays: list[str] = ["memory between regions"] if gaps else []
    outside = gaps
    for region, data in found.items():
        held = expected.get(region)
        if region.kind == "scratch" or held is None or held.size != blocked(data).size:
            continue
        compared, astray = _masks(snapshot, region, held, blocked(data))
        beyond = int((held[astray] != blocked(data)[astray]).sum())
        outside += beyond
        strays += [str(region)] * bool(beyond)
        dtype = _dtype(side, region)
        owners = _owners(snapshot.span.a, region, len(held))
        for owner in np.unique(owners[compared]):
            each = compared & (owners == owner)
            kept, made = held[each].reshape(-1), blocked(data)[each].reshape(-1)
            (floats if dtype in _FLOATS else integers).append(distance(kept, made, dtype))
    return SpanResult(
        snapshot.span, snapshot.turn, worst(floats), worst(integers), outside, tuple(strays)
    )


def _masks(snapshot: Snapshot, region: Region, held: Bytes, now: Bytes) -> tuple[Mask, Mask]:
    """Blocks to compare, and those that B changed where it should not have."""
    span = snapshot.span
    changed = _changed(snapshot.after, region, len(held))
    known = span.a.frontier.writes
    lives = _owned(span.a, region, len(held), known | span.b.frontier.written)
    compared = changed & lives
    if held.size <= _SMALL and any(_is(place, region) for place in known):
        # a small result may well be what it was before: all of it counts
        compared = np.ones(len(held), np.bool_)
    private = _owned(span.b, region, len(held), span.b.frontier.written - known) & ~lives
    differs = (held != now).any(axis=1)
    return compared, differs & ~compared & ~changed & ~private


def _changed(after: Change, region: Region, count: int) -> Mask:
    mask = np.zeros(count, np.bool_)
    if region in after:
        mask[after[region].at] = True
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


def _dtype(side: Side, region: Region) -> DType:
    """A buffer's element type; a state declares none, and kernels on the CPU keep float32 there."""
    return side.manifest.buffers[region.name].dtype if region.kind == "buffer" else "f32"
