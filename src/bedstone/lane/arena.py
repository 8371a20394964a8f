"""Buffers: what each tensor's forms take of one arena, memory shared where lifetimes allow.

A form lives from the launch that first touches it to the last one; an output lives to the end of
the step. Slots are placed largest first, each at the lowest offset where it meets no slot that
lives at the same time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bedstone.lane.facts import Facts
from bedstone.lane.launch import Form, Upto
from bedstone.lane.layout import View, memory_of
from bedstone.lane.schedule import QBLOCK, Buffer, QuantSlots, Slot, Step
from bedstone.lane.touch import touches

ALIGN = 256
"""Every slot starts on a multiple of this many bytes."""


@dataclass(frozen=True, slots=True)
class Arena:
    """The buffers of a step, the bytes they take together, and what they would take apart."""

    buffers: Mapping[str, Buffer]
    nbytes: int
    unshared: int


@dataclass(frozen=True, slots=True)
class _Need:
    """Bytes that must stay untouched from launch `first` to launch `last`."""

    tensor: str
    piece: str
    nbytes: int
    first: int
    last: int


def place_buffers(steps: tuple[Step, ...], facts: Facts, views: Mapping[str, View]) -> Arena:
    """The buffer of every tensor that the steps touch, tables and carried vectors aside."""
    lives = _lives(steps, facts, views)
    needs = [need for at, span in lives.items() for need in _needs(*at, span, facts)]
    slots = _packed(needs)
    homes = {tensor for tensor, _ in lives}
    names = homes | {name for name, view in views.items() if view.parent in homes}
    buffers = {name: _buffer(name, slots, facts, views) for name in sorted(names)}
    end = max((slot.end for slot in slots.values()), default=0)
    return Arena(buffers, _aligned(end), sum(_aligned(need.nbytes) for need in needs))


def _lives(
    steps: tuple[Step, ...], facts: Facts, views: Mapping[str, View]
) -> dict[tuple[str, Form], tuple[int, int]]:
    """The first and last launch that touch each form that takes memory of the arena."""
    own = {
        touch.tensor
        for step in steps
        for touch in touches(step.launch)
        if touch.write and touch.form == "quant" and not step.ops
    }
    lives: dict[tuple[str, Form], tuple[int, int]] = {}
    for at, step in enumerate(steps):
        for touch in touches(step.launch):
            whole = touch.form == "quant" and touch.tensor in own
            home = touch.tensor if whole else memory_of(touch.tensor, views)
            if _in_arena(home, facts):
                first = lives.get((home, touch.form), (at, at))[0]
                lives[home, touch.form] = (first, at)
    for name in facts.graph.outputs:
        first, _ = lives[memory_of(name, views), "f32"]
        lives[memory_of(name, views), "f32"] = (first, len(steps))
    return lives


def _in_arena(name: str, facts: Facts) -> bool:
    table = facts.storage.get(name)
    return name not in facts.graph.carried and (table is None or facts.scratch(table))


def _needs(tensor: str, form: Form, span: tuple[int, int], facts: Facts) -> Iterable[_Need]:
    count = facts.rows(tensor) * facts.width(tensor)
    sizes = {"f32": 4 * count}
    if form == "quant":
        sizes = {"codes": count, "scales": 4 * count // QBLOCK, "sums": 4 * count // QBLOCK}
    return [_Need(tensor, piece, nbytes, *span) for piece, nbytes in sizes.items()]


def _packed(needs: list[_Need]) -> dict[tuple[str, str], Slot]:
    placed: list[tuple[_Need, Slot]] = []
    for need in sorted(needs, key=lambda n: (-n.nbytes, n.first, n.tensor, n.piece)):
        busy = [slot for other, slot in placed if _together(need, other)]
        placed.append((need, Slot(_lowest(need.nbytes, busy), need.nbytes)))
    return {(need.tensor, need.piece): slot for need, slot in placed}


def _together(a: _Need, b: _Need) -> bool:
    return a.first <= b.last and b.first <= a.last


def _lowest(nbytes: int, busy: list[Slot]) -> int:
    """The lowest aligned offset where `nbytes` meet none of the busy slots."""
    offset = 0
    for slot in sorted(busy, key=lambda slot: slot.offset):
        if offset + nbytes <= slot.offset:
            break
        offset = max(offset, _aligned(slot.end))
    return offset


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN


def _buffer(
    name: str, slots: Mapping[tuple[str, str], Slot], facts: Facts, views: Mapping[str, View]
) -> Buffer:
    value, view = facts.values[name], views.get(name)
    quant = None
    if (name, "codes") in slots:
        quant = QuantSlots(slots[name, "codes"], slots[name, "scales"], slots[name, "sums"])
    count = facts.count(name)
    return Buffer(
        tensor=name,
        rows=value.rows,
        width=value.width,
        dtype=value.dtype,
        f32=slots.get((name, "f32")),
        quant=quant,
        view_of=None if view is None else view.parent,
        offset=0 if view is None else view.layout.offset,
        window=None if view is None else view.layout.window,
        live=count.param if isinstance(count, Upto) else None,
    )
