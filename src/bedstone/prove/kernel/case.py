"""A call of a kernel held against its Definition: how far off what came out is."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from bedstone.prove.judge import Metrics
from bedstone.prove.kernel.identify import Known
from bedstone.prove.lazy import Trial
from bedstone.prove.own.problems import tolerance_of
from bedstone.prove.results import Expected
from bedstone.prove.written import judge_output
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
    shapes = [output.shape or () for output in posed.outputs]
    tolerance = tolerance_of(posed.known.kernel, posed.definition, shapes)
    outputs = []
    for output in posed.outputs:
        before = trial.inputs.get(output.target or "")
        wanted, got = trial.expected[output.name], found[output.name]
        metrics = judge_output(output, before, got, wanted, tolerance)
        outputs.append(Found(output.name, metrics))
    return Judged(where, tuple(outputs), faults)
