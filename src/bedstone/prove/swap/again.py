"""What a side does a second time: alike, on other bytes in unused memory, with other last bits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bedstone.prove.swap.diff import Diff
from bedstone.prove.swap.drive import LARGE, NAN, Carries, Outcome, Side, free_run
from bedstone.prove.swap.image import Shadow
from bedstone.prove.swap.measure import LogitDistance, Numbers, logit_distance, worst_logits
from bedstone.prove.swap.record import Record
from bedstone.prove.swap.reel import Reel
from bedstone.prove.swap.replay import Alike, SpanResult, replay
from bedstone.prove.swap.sway import Nudged, sway_run
from bedstone.prove.swap.verdict import Bounds
from bedstone.prove.swap.workload import Turn

_SWAYS = 3
"""Runs with other last bits, where they show: one alone says little of a row that sways widely."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What A does again: `floor` alike, `stale` rows that unused memory changes, `sway` otherwise.

    `swayed` is the largest divergence of each row with other last bits [rows]; `again` are A's
    spans alike, where its logits are not, and `nudged` those with other last bits.
    """

    floor: LogitDistance
    stale: int
    sway: LogitDistance
    swayed: Numbers
    again: tuple[SpanResult, ...]
    nudged: tuple[SpanResult, ...]


def noise(
    side: Side,
    turns: Sequence[Turn],
    found: Diff,
    kept: tuple[Record, Reel],
    bounds: Bounds,
    seed: int,
) -> Noise:
    """Run A again in all these ways."""
    first, carries = kept[0].outcome, kept[0].outcome.carries
    repeat, other = again(side, turns, first, carries)
    floor, stale = against(first, repeat, bounds.kl), differing(repeat, other)
    # where A gives its own logits again, so does each of its spans
    steady = not differing(first, repeat)
    del repeat, other
    rng = np.random.default_rng(seed)
    sways: list[LogitDistance] = []
    while len(sways) < (_SWAYS if sways and _widens(bounds, sways) else 1):
        swayed = sway_run(side, turns, found, carries, rng)
        sways.append(against(first, swayed, bounds.kl))
    nudged = Nudged(side, sorted(kept[0].programs), rng)
    return Noise(
        floor,
        stale,
        worst_logits(sways),
        _largest(sways),
        () if steady else spans(side, turns, kept, Alike()),
        spans(side, turns, kept, nudged),
    )


def spans(
    side: Side, turns: Sequence[Turn], kept: tuple[Record, Reel], own: Alike | Nudged | None = None
) -> tuple[SpanResult, ...]:
    """Each kept span from A's memory; `own` says that the side is A again."""
    return tuple(replay(side, turns, kept[0], Shadow(side.stepper.sizes), kept[1], own))


def _widens(bounds: Bounds, sways: Iterable[LogitDistance]) -> bool:
    """Whether a row sways so far that its limit is not that of all rows."""
    return bool((bounds.widened(_largest(sways)) > bounds.kl).any())


def _largest(sways: Iterable[LogitDistance]) -> Numbers:
    """The largest divergence of each row [rows]."""
    return np.asarray(np.max([each.divergences for each in sways], axis=0))


def again(
    side: Side, turns: Sequence[Turn], first: Outcome, carries: Carries
) -> tuple[Outcome, Outcome]:
    """The outcome of a run alike, and of one on other poison: one run where it changes nothing."""
    other = free_run(side, turns, LARGE, carries)
    if not differing(first, other):
        return first, first
    return free_run(side, turns, NAN, carries), other


def against(a: Outcome, b: Outcome, limit: float | Numbers) -> LogitDistance:
    """How far the logits of B are from A's; `limit` in nats, one or one a row [rows]."""
    found, at = [], 0
    for mine, theirs in zip(a.logits, b.logits, strict=True):
        for name in sorted(mine.keys() & theirs.keys()):
            stop = at + len(mine[name])
            each = limit if isinstance(limit, float) else limit[at:stop]
            found.append(logit_distance(mine[name], theirs[name], each))
            at = stop
    return worst_logits(found)


def differing(a: Outcome, b: Outcome) -> int:
    """Rows of logits that differ; NaN is NaN."""
    pairs = zip(a.logits, b.logits, strict=True)
    return sum(
        int((~((mine[n] == theirs[n]) | np.isnan(mine[n]) & np.isnan(theirs[n]))).any(axis=1).sum())
        for mine, theirs in pairs
        if mine is not theirs
        for n in mine.keys() & theirs.keys()
    )
