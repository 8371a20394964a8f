"""An output held against the reference's: where it is written in place, the rows that changed."""

from dataclasses import replace

import torch

from bedstone.prove.judge import Metrics, judge
from bedstone.prove.results import Expected
from bedstone.prove.tensors import Made, as_bytes
from bedstone.spec.workload import Tolerance


def judge_output(
    output: Expected,
    before: Made | None,
    found: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance | None,
) -> Metrics:
    """Hold an output against the reference's.

    Args:
        output: As declared.
        before: What it held before, where it is an input too.
        found: What it holds now.
        expected: What the reference makes of it.
        tolerance: As `judge` takes it.

    Returns:
        The judge's metrics, the worst value's index that in the whole output.
    """
    rows = _rows_written(before, expected, found)
    if rows is not None:
        return _placed(judge(found[rows], expected[rows], output.dtype, tolerance), rows)
    if _untouched(before, expected, found):
        # memory that neither side writes may hold what is no number
        found = expected = torch.zeros_like(expected)
    return judge(found, expected, output.dtype, tolerance)


def _rows_written(
    before: Made | None, wanted: torch.Tensor, got: torch.Tensor
) -> torch.Tensor | None:
    """Of what is written in part, the rows that either side changed; None for all of it.

    What stays as it was would pass for values that were computed, and hide errors in their size.
    """
    if not isinstance(before, torch.Tensor) or before.dim() == 0:
        return None
    rows = len(before)
    old, new, right = (as_bytes(t.contiguous()).reshape(rows, -1) for t in (before, got, wanted))
    changed = ((old != new) | (old != right)).any(dim=1).nonzero().flatten()
    return changed if len(changed) else None


def _untouched(before: Made | None, wanted: torch.Tensor, got: torch.Tensor) -> bool:
    if not isinstance(before, torch.Tensor):
        return False
    old, new, right = (as_bytes(t.contiguous()) for t in (before, got, wanted))
    return bool(torch.equal(old, new) and torch.equal(old, right))


def _placed(metrics: Metrics, rows: torch.Tensor) -> Metrics:
    """The metrics with the worst value's index in the whole output."""
    if not metrics.worst:
        return metrics
    first, *rest = metrics.worst
    return replace(metrics, worst=(int(rows[first]), *rest))
