"""How long A and B take: whole steps, and the spans that differ; in turn, in one process.

What else the machine does falls on both alike. States hold drawn numbers, as time does not depend
on them, and a step is that of the workload with the most rows, and the one at the longest length.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from bedstone.prove.swap.diff import Diff, Span, programs_changed
from bedstone.prove.swap.drive import NAN, Carries, Side
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.device import Device, Memory

_ROUNDS, _LEAST_ROUNDS = 7, 3
_LONGEST = 2.0
"""Seconds that the rounds of a stretch take about: one that takes long itself has fewer of them."""

_LEAST = 2e-3
"""Seconds that a sample takes at least: what is shorter is run several times."""

_MOST_TIMES = 64
_DRAWN = 1 << 16
_COPIED, _COPIES = 1 << 28, 8
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds of A and of B: of several samples the least."""

    a: float
    b: float


@dataclass(frozen=True, slots=True)
class SpanTime:
    """`count` spans alike of a step, all together; `nbytes` are what A's calls have to move."""

    span: Span
    count: int
    seconds: Pair
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step of so many rows at a length; `nbytes` as of its spans."""

    program: str
    rows: int
    longest: int
    seconds: Pair
    spans: tuple[SpanTime, ...]
    nbytes: int | None

    @property
    def derived(self) -> float:
        """Seconds of B where all that is not in a span takes what it takes in A."""
        spans = sum(each.seconds.b - each.seconds.a for each in self.spans)
        return self.seconds.a + spans


@dataclass(frozen=True, slots=True)
class Perf:
    """All steps timed; `bandwidth` is what memory gave in this run, in bytes a second."""

    bandwidth: float
    steps: tuple[StepTime, ...]


def timed_turns(turns: Sequence[Turn], found: Diff) -> dict[int, Turn]:
    """Of each changed program the call with the most rows and the one at the longest length."""
    chosen: dict[int, Turn] = {}
    for program in programs_changed(found):
        of = [(index, turn) for index, turn in enumerate(turns) if turn.program == program]
        if of:
            for key in (lambda each: each[1].rows, lambda each: each[1].longest):
                chosen.setdefault(*max(of, key=key))
    return dict(sorted(chosen.items()))


def time_swap(
    sides: tuple[Side, Side],
    chosen: Mapping[int, Turn],
    found: Diff,
    carries: Carries,
    nbytes: Mapping[int, tuple[int, ...]],
    clock: Clock = perf_counter,
) -> Iterator[StepTime]:
    """Time the chosen turns on both sides.

    Args:
        sides: A and B, both loaded.
        chosen: Turns by their index.
        found: What differs.
        carries: What chains go on from.
        nbytes: Bytes of each call of a turn, where they are known.
        clock: Seconds.

    Yields:
        StepTime: the times of each turn.
    """
    for side in sides:
        _fill(side)
    for index, turn in chosen.items():
        for side in sides:
            side.begin(turn, NAN)
            for region, data in carries.get(index, {}).items():
                side.stepper.write(region, data)
        counted = nbytes.get(index, ())
        known = len(counted) == sides[0].calls(turn.program)
        yield StepTime(
            turn.program,
            turn.rows,
            turn.longest,
            _step(sides, turn, clock),
            tuple(_spans(sides, turn, found, counted if known else None, clock)),
            sum(counted) if known else None,
        )


def copy_rate(device: Device, clock: Clock = perf_counter) -> float:
    """Bytes a second, read and written, of copies within a device's memory; the best of a few."""
    source, target = (device.allocate(_COPIED) for _ in range(2))
    try:
        seconds = [_copied(device, source, target, clock) for _ in range(_ROUNDS)]
    finally:
        device.release(source)
        device.release(target)
    return 2 * _COPIED * _COPIES / min(seconds)


def _copied(device: Device, source: Memory, target: Memory, clock: Clock) -> float:
    device.read(target.address, 1)
    began = clock()
    for _ in range(_COPIES):
        device.copy(target.address, source.address, _COPIED)
    device.read(target.address, 1)
    return clock() - began


def _fill(side: Side) -> None:
    """Numbers of everyday size in every paged state, zeros in the others."""
    numbers = np.random.default_rng(0).standard_normal(_DRAWN, np.float32)
    # the upper half of a float32 is a bfloat16
    drawn = (numbers.view(np.uint16)[1::2] if side.cached == "bf16" else numbers).tobytes()
    for region in side.stepper.regions:
        if region.kind == "state":
            paged = side.manifest.states[region.name].bytes_per_token
            with side.stepper.edit(region) as memory:
                memory[:] = np.resize(np.frombuffer(drawn, np.uint8), memory.size) if paged else 0


def _step(sides: tuple[Side, Side], turn: Turn, clock: Clock) -> Pair:
    ends = [side.calls(turn.program) for side in sides]
    return _pair(sides, turn, ((0, ends[0]), (0, ends[1])), clock)


def _spans(
    sides: tuple[Side, Side],
    turn: Turn,
    found: Diff,
    counted: Sequence[int] | None,
    clock: Clock,
) -> Iterator[SpanTime]:
    """One span of each kind, for all of its kind."""
    kinds: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Span]] = {}
    for span in programs_changed(found)[turn.program]:
        kinds.setdefault((span.a.ops, span.b.ops), []).append(span)
    for alike in kinds.values():
        span = alike[len(alike) // 2]
        one = _pair(sides, turn, ((span.a.start, span.a.stop), (span.b.start, span.b.stop)), clock)
        moved = None
        if counted is not None:
            moved = sum(sum(counted[each.a.start : each.a.stop]) for each in alike)
        count = len(alike)
        yield SpanTime(span, count, Pair(one.a * count, one.b * count), moved)


def _pair(
    sides: tuple[Side, Side],
    turn: Turn,
    calls: tuple[tuple[int, int], tuple[int, int]],
    clock: Clock,
) -> Pair:
    """Seconds of a stretch of calls, A and B in turn, each first every second round."""
    runs = [_Run(side, turn, *stretch, clock) for side, stretch in zip(sides, calls, strict=True)]
    samples: tuple[list[float], list[float]] = ([], [])
    both = sum(run.first for run in runs)
    rounds = min(_ROUNDS, max(_LEAST_ROUNDS, int(_LONGEST / both))) if both else _LEAST_ROUNDS
    for at in range(rounds):
        for which in (0, 1) if at % 2 else (1, 0):
            samples[which].append(runs[which].sample())
    return Pair(min(samples[0]), min(samples[1]))


class _Run:
    """A stretch that is run so often that a sample is long enough; `first` is what one took."""

    def __init__(self, side: Side, turn: Turn, start: int, stop: int, clock: Clock) -> None:
        self._side, self._turn, self._stretch, self._clock = side, turn, (start, stop), clock
        self._times = 1
        self.first = self.sample()
        # the first run of a short stretch says little
        once = self.first if self.first > _LEAST else self.sample()
        self._times = min(_MOST_TIMES, max(1, round(_LEAST / once))) if once else 1

    def sample(self) -> float:
        """Seconds of one run, the mean of several."""
        if self._stretch[0] == self._stretch[1]:
            return 0.0
        began = self._clock()
        self._side.stepper.run(
            self._turn.program, *self._stretch, self._turn.vars, times=self._times
        )
        return (self._clock() - began) / self._times
