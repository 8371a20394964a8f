"""Blocks of the arena: slots that move together, and where each block lies.

A form of a tensor is a block by itself, unless tensors must lie side by side, or a result takes the
place of an operand. Blocks are placed largest first, each at the lowest offset where it meets no
block that lives at the same time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bedstone.lane.schedule import Slot

ALIGN = 256
"""Every block starts on a multiple of this many bytes."""

_SPAN = 32
"""Launches that share a bucket, so that few blocks are looked through for those alive at once."""

Piece = tuple[str, str]
"""A tensor, and which piece of its memory: its values, or its codes, scales or sums."""


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that must stay untouched from launch `first` to launch `last`.

    `starts` says where in them each piece lies.
    """

    nbytes: int
    first: int
    last: int
    starts: Mapping[Piece, int]

    def beside(self, others: Iterable["Block"]) -> "Block":
        """One block, with what other blocks hold behind what this one holds."""
        made = self
        for other in others:
            starts = {piece: made.nbytes + at for piece, at in other.starts.items()}
            made = Block(
                made.nbytes + other.nbytes,
                min(made.first, other.first),
                max(made.last, other.last),
                {**made.starts, **starts},
            )
        return made

    def over(self, other: "Block") -> "Block":
        """One block, in which `other` takes this one's place when its turn comes."""
        return replace(self, last=other.last, starts={**self.starts, **other.starts})


def place(blocks: Iterable[Block], sizes: Mapping[Piece, int]) -> dict[Piece, Slot]:
    """Where each piece lies."""
    slots: dict[Piece, Slot] = {}
    buckets: dict[int, list[tuple[Block, Slot]]] = {}
    for block in sorted(blocks, key=lambda b: (-b.nbytes, b.first, min(b.starts))):
        spans = range(block.first // _SPAN, block.last // _SPAN + 1)
        met = (entry for span in spans for entry in buckets.get(span, ()))
        busy = {slot for other, slot in met if _together(block, other)}
        slot = Slot(_lowest(block.nbytes, busy), block.nbytes)
        for span in spans:
            buckets.setdefault(span, []).append((block, slot))
        for piece, start in block.starts.items():
            slots[piece] = Slot(slot.offset + start, sizes[piece])
    return slots


def _together(a: Block, b: Block) -> bool:
    return a.first <= b.last and b.first <= a.last


def _lowest(nbytes: int, busy: Iterable[Slot]) -> int:
    """The lowest aligned offset where `nbytes` meet none of the busy slots."""
    offset = 0
    for slot in sorted(busy, key=lambda slot: slot.offset):
        if offset + nbytes <= slot.offset:
            break
        offset = max(offset, aligned(slot.end))
    return offset


def aligned(nbytes: int) -> int:
    """`nbytes` and what is missing to the next boundary."""
    return -(-nbytes // ALIGN) * ALIGN
