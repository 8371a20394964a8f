"""Buffers: what each tensor's forms take of one arena, memory shared where lifetimes allow.

A form lives from the launch that first touches it to the last one; an output lives to the end of
the step. A result whose launch may work in place takes the memory of an operand that ends there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bedstone.lane.blocks import Block, Piece, aligned, place
from bedstone.lane.facts import Facts
from bedstone.lane.inplace import in_place
from bedstone.lane.launch import Form, Upto
from bedstone.lane.layout import View, memory_of
from bedstone.lane.schedule import Buffer, QuantSlots, Slot, Step, code_sizes
from bedstone.lane.touch import touches

Stacks = tuple[tuple[str, ...], ...]
"""Tensors of a row each that lie one after another in memory."""


@dataclass(frozen=True, slots=True)
class Arena:
    """The buffers of a step, the bytes they take together, and what they would take apart."""

    buffers: Mapping[str, Buffer]
    nbytes: int
    unshared: int


def place_buffers(
    steps: tuple[Step, ...], facts: Facts, views: Mapping[str, View], stacks: Stacks = ()
) -> Arena:
    """The buffer of every tensor that the steps touch, tables and carried vectors aside."""
    lives = _lives(steps, facts, views)
    sizes = {piece: n for name, form in lives for piece, n in _sizes(name, form, facts)}
    blocks = {
        piece: Block(sizes[piece], *span, {piece: 0})
        for (name, form), span in lives.items()
        for piece, _ in _sizes(name, form, facts)
    }
    unshared = sum(aligned(block.nbytes) for block in blocks.values())
    _stack(blocks, stacks)
    _overlay(blocks, steps, facts)
    slots = place({id(block): block for block in blocks.values()}.values(), sizes)
    homes = {tensor for tensor, _ in lives}
    names = homes | {name for name, view in views.items() if view.parent in homes}
    before = {name: stack[at] for stack in stacks for at, name in enumerate(stack[1:])}
    placed = _Placed(slots, facts, views, before)
    buffers = {name: placed.buffer(name) for name in sorted(names)}
    end = max((slot.end for slot in slots.values()), default=0)
    return Arena(buffers, aligned(end), unshared)


def _stack(blocks: dict[Piece, Block], stacks: Stacks) -> None:
    """Join the blocks of tensors that lie side by side."""
    for stack in stacks:
        for kind in ("f32", "codes", "scales", "sums"):
            pieces = [(name, kind) for name in stack if (name, kind) in blocks]
            if pieces:
                first, *others = (blocks[piece] for piece in pieces)
                blocks |= dict.fromkeys(pieces, first.beside(others))


def _overlay(blocks: dict[Piece, Block], steps: tuple[Step, ...], facts: Facts) -> None:
    """Join the block of a result with that of an operand whose place it takes."""
    if not facts.knobs.in_place:
        return
    for at, step in enumerate(steps):
        for read, written in in_place(step.launch):
            old, new = blocks.get((read, "f32")), blocks.get((written, "f32"))
            if old is None or new is None or len(new.starts) > 1 or old is new:
                continue
            ends = (old.last, new.first, old.nbytes) == (at, at, new.nbytes)
            if ends and set(old.starts.values()) == {0}:
                joined = old.over(new)
                blocks |= dict.fromkeys(joined.starts, joined)
                break


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


def _sizes(tensor: str, form: Form, facts: Facts) -> Iterator[tuple[Piece, int]]:
    """The bytes of each piece of a form."""
    count = facts.rows(tensor) * facts.width(tensor)
    if form == "f32":
        yield (tensor, "f32"), 4 * count
        return
    for kind, nbytes in code_sizes(count, facts.coding).items():
        yield (tensor, kind), nbytes


@dataclass(frozen=True, slots=True)
class _Placed:
    """What is known of each buffer once slots are; `before` names what a tensor lies beside."""

    slots: Mapping[Piece, Slot]
    facts: Facts
    views: Mapping[str, View]
    before: Mapping[str, str]

    def buffer(self, name: str) -> Buffer:
        """The record of one tensor."""
        value, view, slots = self.facts.values[name], self.views.get(name), self.slots
        quant = None
        if (name, "codes") in slots:
            scales, sums = slots.get((name, "scales")), slots.get((name, "sums"))
            quant = QuantSlots(slots[name, "codes"], scales, sums)
        count = self.facts.count(name)
        f32 = slots.get((name, "f32"))
        return Buffer(
            tensor=name,
            rows=value.rows,
            width=value.width,
            dtype=value.dtype,
            f32=f32,
            quant=quant,
            view_of=None if view is None else view.parent,
            offset=0 if view is None else view.layout.offset,
            window=None if view is None else view.layout.window,
            live=count.param if isinstance(count, Upto) else None,
            beside=self.before.get(name) if f32 or quant else None,
        )
