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
from bedstone.prove.swap.record import BLOCK, Record, Shadow, Snapshot, blocked, changed_blocks
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region
from bedstone.spec.dtype import DType

_SMALL = 4096
_FLOATS = frozenset({"f32", "f16", "bf16", "fp8e4m3", "fp8e8m0"})
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SpanResult:
    """A span of a turn: what B wrote against A's, and bytes written where A writes none.

    `numbers` are floats, and codes of them, `exact` integers that others act on; `strays`
    names the regions written outside.
    """

    span: Span
    turn: int
    numbers: Distance
    exact: Distance
    outside: int
    strays: tuple[str, ...]


def replay(
    side: Side, turns: Sequence[Turn], record: Record, shadow: Shadow, *, own: bool = False
) -> Iterator[SpanResult]:
    """Run each snapshot's span on a side; `own` says that it is A again, for the noise floor.

    `shadow` holds zeros, as when the record began.
    """
    stands: dict[Region, Bytes] = {}
    for snapshot in record.snapshots:
        shadow.put(snapshot.before)
        _restore(side, shadow, stands)
        gaps = side.stepper.between()
        stretch = snapshot.span.a if own else snapshot.span.b
        turn = turns[snapshot.turn]
        side.stepper.run(turn.program, stretch.start, stretch.stop, turn.vars)
        now = stands = {region: side.stepper.read(region) for region in side.stepper.regions}
        shadow.put(snapshot.after)
        outside = sum(x != y for x, y in zip(gaps, side.stepper.between(), strict=True))
        yield _result(side, snapshot, shadow.blocks, now, outside)


def _restore(side: Side, shadow: Shadow, stands: Mapping[Region, Bytes]) -> None:
    """Make memory what the shadow says; `stands` is what it holds, as far as that is known."""
    for region, memory in side.stepper.regions.items():
        held = shadow.blocks.get(region)
        if held is None or len(held) != -(-memory.nbytes // BLOCK):
            continue
        wanted = held.reshape(-1)[: memory.nbytes]
        if region not in stands or not np.array_equal(stands[region], wanted):
            side.stepper.write(region, wanted)


def _result(
    side: Side,
    snapshot: Snapshot,
    expected: Mapping[Region, Bytes],
    found: Mapping[Region, Bytes],
    gaps: int,
) -> SpanResult:
    numbers: list[Distance] = []
    exact: list[Distance] = []
    strays: list[str] = ["memory between regions"] if gaps else []
    outside = gaps
    for region, data in found.items():
        held, now = expected.get(region), blocked(data)
        if region.kind == "scratch" or held is None or held.size != now.size:
            continue
        differs = _marked(changed_blocks(held, now), len(held))
        if region not in snapshot.after and not differs.any():
            continue
        compared, astray = _masks(snapshot, region, len(held), differs)
        beyond = int((held[astray] != now[astray]).sum())
        outside += beyond
        strays += [str(region)] * bool(beyond)
        owners = _owners(snapshot.span.a, region, len(held))
        for owner in np.unique(owners[compared]):
            each = compared & (owners == owner)
            pair = held[each].reshape(-1), now[each].reshape(-1)
            (numbers if _measured(side, region) else exact).append(
                distance(*pair, _dtype(side, region))
            )
    return SpanResult(
        snapshot.span, snapshot.turn, worst(numbers), worst(exact), outside, tuple(strays)
    )


def _masks(snapshot: Snapshot, region: Region, count: int, differs: Mask) -> tuple[Mask, Mask]:
    """Of `count` blocks those to compare, and those that B changed where it should not have."""
    span = snapshot.span
    after = snapshot.after.get(region)
    changed = _marked(after.at if after else np.zeros(0, np.intp), count)
    known = span.a.frontier.writes
    lives = _owned(span.a, region, count, known | span.b.frontier.written)
    compared = changed & lives
    if count * BLOCK <= _SMALL and any(_is(place, region) for place in known):
        # a small result may well be what it was before: all of it counts
        compared = np.ones(count, np.bool_)
    private = _owned(span.b, region, count, span.b.frontier.written - known) & ~lives
    return compared, differs & ~compared & ~changed & ~private


def _marked(at: NDArray[np.intp], count: int) -> Mask:
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


def _dtype(side: Side, region: Region) -> DType:
    """A buffer's element type; a state declares none, and kernels on the CPU keep float32 there."""
    return side.manifest.buffers[region.name].dtype if region.kind == "buffer" else "f32"
