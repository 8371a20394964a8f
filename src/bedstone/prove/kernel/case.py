"""A call of a kernel held against its Definition: how far off what came out is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from bedstone.prove.judge import Metrics, judge
from bedstone.prove.kernel.identify import Known
from bedstone.prove.lazy import Trial
from bedstone.prove.own.problems import tolerance_of
from bedstone.prove.results import Expected
from bedstone.prove.tensors import Made, as_bytes
from bedstone.spec.definition import Definition


@dataclass(frozen=True, slots=True)
class Found:
    """One output of one call; `metrics` are the judge's, with the worst value's index."""

    output: str
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Judged:
    """One call: where its inputs are from, each output, and what it did that it must not."""

    where: str
    outputs: tuple[Found, ...]
    faults: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every output is right and nothing else was touched."""
        return not self.faults and all(found.metrics.fits for found in self.outputs)


@dataclass(frozen=True, slots=True)
class Posed:
    """An op, its Definition at the sizes of a call, and the outputs that it declares."""

    known: Known
    definition: Definition
    outputs: tuple[Expected, ...]


def judge_call(
    posed: Posed,
    where: str,
    trial: Trial,
    found: Mapping[str, torch.Tensor],
    faults: tuple[str, ...] = (),
) -> Judged:
    """Hold what a call left, `found`, against what the reference says of its inputs."""
    tolerance = tolerance_of(posed.known.kernel, posed.definition)
    outputs = []
    for output in posed.outputs:
        wanted, got = trial.expected[output.name], found[output.name]
        rows = _rows_written(trial.inputs.get(output.target or ""), wanted, got)
        if rows is not None:
            wanted, got = wanted[rows], got[rows]
        elif _untouched(trial.inputs.get(output.target or ""), wanted, got):
            # memory that neither side writes may hold what is no number
            wanted = got = torch.zeros_like(wanted)
        metrics = judge(got, wanted, output.dtype, tolerance)
        outputs.append(Found(output.name, _placed(metrics, rows)))
    return Judged(where, tuple(outputs), faults)


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


def _placed(metrics: Metrics, rows: torch.Tensor | None) -> Metrics:
    """The metrics with the worst value's index in the whole output."""
    if rows is None or not metrics.worst:
        return metrics
    first, *rest = metrics.worst
    return replace(metrics, worst=(int(rows[first]), *rest))
