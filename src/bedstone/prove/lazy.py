"""Answers that take no work: a tolerance under which one of them passes proves nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from bedstone.prove.results import Expected
from bedstone.prove.tensors import Made, as_bytes, as_numbers
from bedstone.prove.written import judge_output
from bedstone.spec.element import ELEMENTS
from bedstone.spec.workload import Tolerance

Outputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Trial:
    """The inputs of one trial and the reference's outputs for them."""

    inputs: Mapping[str, Made | None]
    expected: Outputs


def passing_lazily(
    trials: Sequence[Trial], outputs: Sequence[Expected], tolerance: Tolerance | None
) -> str | None:
    """The first lazy answer that would pass every trial; None where all fail.

    Args:
        trials: At least one.
        outputs: Those declared.
        tolerance: As asked for. One that states numbers is tried without the rule about spread: it
            must be able to tell by itself.

    Returns:
        What the answer is, in words.
    """
    if tolerance is not None and tolerance.rtol is not None:
        tolerance = replace(tolerance, spread=torch.inf)
    for name in ("zeros", "a constant", "an earlier answer", "an input"):
        if all(
            _passes(answer, trial, outputs, tolerance)
            for trial, answer in zip(trials, _answers(name, trials, outputs), strict=True)
        ):
            return name
    return None


def same_inputs(one: Trial, other: Trial) -> bool:
    """Whether two trials have the same values, as where every input is stored."""
    for name, value in one.inputs.items():
        there = other.inputs[name]
        if isinstance(value, torch.Tensor) and isinstance(there, torch.Tensor):
            if value.numel() and not torch.equal(as_bytes(value), as_bytes(there)):
                return False
        elif value != there:
            return False
    return True


def _passes(
    answer: Outputs | None,
    trial: Trial,
    outputs: Sequence[Expected],
    tolerance: Tolerance | None,
) -> bool:
    if answer is None:
        return False
    judged = (
        judge_output(
            o, trial.inputs.get(o.target or ""), answer[o.name], trial.expected[o.name], tolerance
        )
        for o in outputs
    )
    return all(metrics.fits for metrics in judged)


def _answers(
    name: str, trials: Sequence[Trial], outputs: Sequence[Expected]
) -> Iterator[Outputs | None]:
    """What the lazy one answers in each trial; None where it has no answer."""
    for at, trial in enumerate(trials):
        match name:
            case "zeros":
                yield {n: _zeros(t) for n, t in trial.expected.items()}
            case "a constant":
                # the first trial's, which is all that could be known beforehand
                yield _constants(trials[0].expected, trial.expected, outputs)
            case "an earlier answer":
                yield None if same_inputs(trial, trials[at - 1]) else trials[at - 1].expected
            case _:
                yield _inputs(trial, outputs)


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(tensor)
    if out.numel():
        as_bytes(out).zero_()
    return out


def _constants(first: Outputs, like: Outputs, outputs: Sequence[Expected]) -> Outputs | None:
    """The mean of each floating output; None where an output is no float or has one value only."""
    found = {}
    for output in outputs:
        packed = output.dtype.startswith("float4")
        if ELEMENTS[output.dtype].kind != "float" or packed or like[output.name].numel() < 2:
            return None
        numbers = as_numbers(first[output.name])
        mean = numbers[numbers.isfinite()].mean()
        found[output.name] = torch.full_like(numbers, float(mean)).to(like[output.name].dtype)
    return found


def _inputs(trial: Trial, outputs: Sequence[Expected]) -> Outputs | None:
    """For each output an input of its type and shape, unchanged: its own where it is in place."""
    found = {}
    for output in outputs:
        expected = trial.expected[output.name]
        named = [trial.inputs.get(output.target)] if output.target else trial.inputs.values()
        alike = [
            value
            for value in named
            if isinstance(value, torch.Tensor)
            and (value.shape, value.dtype) == (expected.shape, expected.dtype)
        ]
        if not alike:
            return None
        found[output.name] = alike[0]
    return found
