"""How far A's logits sway where the last bits of what changed are others.

Roundings that no two kernels share are amplified by the rest of the model, codes of eight bits
above all. A's own run with such roundings says how much that is.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bedstone.prove.swap.diff import Diff, programs_changed
from bedstone.prove.swap.diff import Side as Stretch
from bedstone.prove.swap.drive import NAN, Bytes, Outcome, Side
from bedstone.prove.swap.frontier import Place, frontier
from bedstone.prove.swap.image import Shadow
from bedstone.prove.swap.record import Record
from bedstone.prove.swap.replay import SpanResult, dtype_of, region_of, replay
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.lower import Region
from bedstone.spec.dtype import DTYPE_BYTES, DType

_WORDS: dict[int, type[np.unsignedinteger]] = {2: np.uint16, 4: np.uint32}
_FLOATS: frozenset[DType] = frozenset({"f32", "f16", "bf16"})


def sway_run(
    side: Side,
    turns: Sequence[Turn],
    found: Diff,
    carries: Mapping[int, Mapping[Region, Bytes]],
    rng: np.random.Generator,
) -> Outcome:
    """Drive A with a last bit in two flipped wherever a changed span leaves floats in a buffer."""
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
            for place in span.a.frontier.writes:
                _flip(side, place, ends[turn.program][place], rng)
            at = span.a.stop
        side.stepper.run(turn.program, at, side.calls(turn.program), turn.vars)
        outcome.logits.append(side.logits(turn))
    return outcome


def swayed_spans(
    side: Side, turns: Sequence[Turn], kept: Record, rng: np.random.Generator
) -> tuple[SpanResult, ...]:
    """What A's spans leave where a last bit in two of the floats that they read is flipped."""
    ends = {program: _ends(side, program) for program in sorted(kept.programs)}

    def nudge(program: str, stretch: Stretch) -> None:
        for place in stretch.frontier.reads:
            _flip(side, place, ends[program].get(place), rng)

    return tuple(replay(side, turns, kept, Shadow(side.stepper.sizes), own=True, nudge=nudge))


def _ends(side: Side, program: str) -> dict[Place, int | None]:
    """Where each place that a program writes ends: where the next one of its buffer begins."""
    written = sorted(frontier(side.manifest, program, 0, side.calls(program)).written)
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
            values ^= rng.integers(2, size=values.size, dtype=values.dtype)
