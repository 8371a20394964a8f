"""Outputs that are drawn at random: judged by how they are distributed, not one by one.

A reference that gives other integers under another seed draws them. Its draws and the Solution's
for the same inputs are then two samples, row by row; ranks within a row make rows comparable, and
the two-sample test of Kolmogorov and Smirnov says whether both could come from one distribution.
"""

from collections.abc import Mapping, Sequence
from math import log, sqrt

import torch

from bedstone.prove.judge import Metrics
from bedstone.prove.tensors import Made

DRAWS = 64
"""Draws of each row, by the reference and by the Solution."""

FALSE_ALARM = 1e-6
"""How often a Solution that draws as the reference does is called wrong."""


def weights_of(inputs: Mapping[str, Made | None], drawn: torch.Tensor) -> torch.Tensor | None:
    """The floating input whose last axis drawn indices point into: it has that one axis more."""
    for value in inputs.values():
        if (
            isinstance(value, torch.Tensor)
            and value.is_floating_point()
            and value.dim() == drawn.dim() + 1
            and value.shape[:-1] == drawn.shape
        ):
            return value
    return None


def judge_draws(
    found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], weights: torch.Tensor
) -> Metrics:
    """Hold draws against the reference's.

    Args:
        found: The Solution's draws, each of indices into the last axis of `weights`.
        expected: The reference's for the same inputs.
        weights: What the indices point into, such as probabilities.

    Returns:
        Whether both could be drawn alike; `spread` is the largest distance between the two
        distributions, in [0, 1].
    """
    ours, theirs = torch.stack(list(found)), torch.stack(list(expected))
    size = weights.shape[-1]
    outside = (ours < 0) | (ours >= size)
    if bool(outside.any()):
        at = [int(i) for i in outside.nonzero()[0]]
        value, reason = float(ours[tuple(at)]), f"an index outside [0, {size})"
        return Metrics(fits=False, worst=tuple(at[1:]), found=value, matched=0.0, reasons=(reason,))
    distance = _distance(_looked_up(ours, weights), _looked_up(theirs, weights))
    limit = _limit(ours.numel(), theirs.numel())
    reason = f"draws lie {distance:.3f} from the reference's, expected at most {limit:.3f}"
    fits = distance <= limit
    return Metrics(fits=fits, spread=distance, reasons=() if fits else (reason,))


def _limit(ours: int, theirs: int) -> float:
    return sqrt(-log(FALSE_ALARM / 2) / 2) * sqrt((ours + theirs) / (ours * theirs))


def _looked_up(draws: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """[draws, rows]: the weight at each drawn index."""
    rows = weights.reshape(-1, weights.shape[-1])
    indices = draws.reshape(draws.shape[0], -1).long()
    return torch.gather(rows.T, 0, indices)


def _distance(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference between the distributions of both samples' ranks, all rows pooled."""
    pooled = torch.cat((ours, theirs))
    ordered = pooled.sort(dim=0).values.T.contiguous()
    ranks = torch.searchsorted(ordered, pooled.T.contiguous()).T
    levels = torch.arange(pooled.shape[0] + 1)
    sides = (ranks[: ours.shape[0]].flatten(), ranks[ours.shape[0] :].flatten())
    shares = [torch.searchsorted(s.sort().values, levels, right=True) / s.numel() for s in sides]
    return float((shares[0] - shares[1]).abs().max())
