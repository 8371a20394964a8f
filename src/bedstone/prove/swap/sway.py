"""How far A's logits sway where the last bits of what changed are others.

Roundings that no two kernels share are amplified by the rest of the model, codes of eight bits
above all. A's own run with such roundings says how much that is.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bedstone.prove.swap.diff import Diff, programs_changed
from bedstone.prove.swap.diff import Side as Stretch
from bedstone.prove.swap.drive import NAN, Bytes, Outcome, Side
from bedstone.prove.swap.frontier import Flow, Place
from bedstone.prove.swap.reach import Reach, region_of
from bedstone.prove.swap.replay import dtype_of
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region
from bedstone.spec.dtype import DTYPE_BYTES, DType

_WORDS: dict[int, type[np.unsignedinteger]] = {2: np.uint16, 4: np.uint32}
_FLOATS: frozenset[DType] = frozenset({"f32", "f16", "bf16"})
_SELDOM = 256
"""Of values of sixteen bits one in so many is flipped: they are sums in float32, which seldom round
to another neighbour where their own last bits are others."""


def sway_run(
    side: Side,
    turns: Sequence[Turn],
    found: Diff,
    carries: Mapping[int, Mapping[Region, Bytes]],
    rng: np.random.Generator,
) -> Outcome:
    """Drive A with last bits flipped wherever a changed span leaves floats: of float32 in half."""
    outcome = Outcome()
    spans = programs_changed(found)
    ends = {program: _ends(side, program) for program in spans}
    side.open(NAN)
    for index, turn in enumerate(turns):
        side.begin(turn, NAN)
        for region, data in carries.get(index, {}).items():
            side.stepper.write(region, data)
        at = 0
        for span in spans.get(turn.program, ()):
            side.stepper.run(turn.program, at, span.a.stop, turn.vars)
            for place in sorted(span.a.frontier.writes):
                _flip(side, place, ends[turn.program][place], rng)
            at = span.a.stop
        side.stepper.run(turn.program, at, side.calls(turn.program), turn.vars)
        outcome.logits.append(side.logits(turn))
    return outcome


class Nudged:
    """A again, with last bits flipped of the floats that a span of it reads."""

    def __init__(self, side: Side, programs: Iterable[str], rng: np.random.Generator) -> None:
        self._side, self._rng = side, rng
        self._ends = {program: _ends(side, program) for program in programs}
        self._reaches = {program: Reach(side.manifest, program) for program in self._ends}

    def prepare(self, program: str, stretch: Stretch) -> frozenset[Region]:
        """Flip bits before a stretch runs; what it may then have changed."""
        for place in sorted(stretch.frontier.reads):
            _flip(self._side, place, self._ends[program].get(place), self._rng)
        return self._reaches[program].touched(stretch.start, stretch.stop)


def _ends(side: Side, program: str) -> dict[Place, int | None]:
    """Where each place that a program writes ends: where the next one of its buffer begins."""
    written = sorted(Flow(side.manifest, program).frontier(0, side.calls(program)).written)
    following: list[Place | None] = [*written[1:], None]
    return {
        place: after.offset if after and after.name == place.name else None
        for place, after in zip(written, following, strict=True)
    }


def _flip(side: Side, place: Place, end: int | None, rng: np.random.Generator) -> None:
    """Flip last bits of what lies at a place of a float buffer, or of a state."""
    region = region_of(place)
    dtype = dtype_of(side, region)
    if dtype in _FLOATS:
        with side.stepper.edit(region, place.offset, end) as memory:
            values = memory.view(_WORDS[DTYPE_BYTES[dtype]])
            if dtype == "f32":
                drawn = np.frombuffer(rng.bytes(-(-values.size // 8)), np.uint8)
                values ^= np.unpackbits(drawn, count=values.size)
            else:
                values[rng.integers(values.size, size=values.size // _SELDOM)] ^= 1
