"""All memory of a side at a moment, and how it differs from another moment: blocks that changed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.prove.swap.drive import NAN, Bytes
from bedstone.runtime.lower import Region
from bedstone.runtime.stepper import Stepper

BLOCK = 64
"""Bytes that are kept or compared as one: as many words as a word has bytes."""

Indices = NDArray[np.int32]
_NOWHERE: Indices = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of a region by index [n]: those that hold nothing but poison, then the others' bytes.

    `data` [m, BLOCK] are the last m of them.
    """

    at: Indices
    data: Bytes

    @classmethod
    def of(cls, region: Bytes, at: Indices) -> "Blocks":
        """The blocks at indices [n] of a region's blocks [count, BLOCK]."""
        data = region[at]
        blank = (data == NAN).all(axis=1)
        return cls(np.concatenate([at[blank], at[~blank]]), data[~blank])

    def put(self, region: Bytes) -> None:
        """Set them in a region's blocks [count, BLOCK]."""
        blank = len(self.at) - len(self.data)
        region[self.at[:blank]] = NAN
        region[self.at[blank:]] = self.data


Change = Mapping[Region, Blocks]


class Shadow:
    """Every region's bytes at a moment, each as blocks [n, BLOCK], zero padded; zeros at first."""

    def __init__(self, sizes: Mapping[Region, int]) -> None:
        self.blocks: dict[Region, Bytes] = {
            region: np.zeros((-(-nbytes // BLOCK), BLOCK), np.uint8)
            for region, nbytes in sizes.items()
        }

    def take(self, stepper: Stepper, regions: Collection[Region] | None = None) -> Change:
        """Bring the shadow up to date, everywhere or in some regions; what changed."""
        changes: dict[Region, Blocks] = {}
        for region, held in self.blocks.items():
            if not (regions is None or region in regions):
                continue
            now = blocked(stepper.view(region))
            at = changed_blocks(held, now)
            if at.size:
                changes[region] = Blocks.of(now, at)
                changes[region].put(held)
        return changes

    def put(self, change: Change) -> None:
        """Bring the shadow to a later moment."""
        for region, blocks in change.items():
            blocks.put(self.blocks[region])

    def differing(
        self, stepper: Stepper, regions: Collection[Region] | None = None
    ) -> dict[Region, Indices]:
        """Where a side's memory is another, in regions that both have and that are as large.

        Regions that are not among those given, if any are, count as alike.
        """
        return {
            region: changed_blocks(held, blocked(stepper.view(region)))
            if regions is None or region in regions
            else _NOWHERE
            for region, held in self.shared(stepper).items()
        }

    def shared(self, stepper: Stepper) -> dict[Region, Bytes]:
        """The regions that a side has too, and as large."""
        counts = {region: -(-nbytes // BLOCK) for region, nbytes in stepper.sizes.items()}
        return {r: held for r, held in self.blocks.items() if counts.get(r) == len(held)}


def blocked(data: Bytes) -> Bytes:
    """Bytes [n] as blocks; a copy, padded with zeros, where the last one is not whole."""
    short = -data.size % BLOCK
    return (np.pad(data, (0, short)) if short else data).reshape(-1, BLOCK)


def changed_blocks(before: Bytes, after: Bytes) -> Indices:
    """Indices of blocks that differ."""
    words = before.view(np.uint64) != after.view(np.uint64)
    return np.flatnonzero(words.view(np.uint64)).astype(np.int32)


def write_blocks(stepper: Stepper, region: Region, held: Bytes, at: Indices) -> None:
    """Set blocks of a side's region to what `held` [count, BLOCK] has there, in ascending order."""
    first, end = int(at[0]), int(at[-1]) + 1
    with stepper.edit(region, first * BLOCK, end * BLOCK) as memory:
        if memory.size % BLOCK:
            memory[:] = held[first:end].reshape(-1)[: memory.size]
        else:
            memory.reshape(-1, BLOCK)[at - first] = held[at]
