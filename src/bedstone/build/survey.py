"""Every form of a model's step, planned and counted: what `bedstone plan` reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bedstone.build.lane import Lane
from bedstone.build.request import Options, served_context
from bedstone.build.step import PlannedStep, plan_step
from bedstone.build.summary import Summary, summarize
from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.shapes import Shape
from bedstone.errors import CallerError
from bedstone.graph.step import FormName
from bedstone.target.bandwidth import Bandwidth


@dataclass(frozen=True, slots=True)
class Choices:
    """What to plan and where to count it.

    `at` is the position of a step's last row, None half of the context.
    """

    options: Options
    forms: Sequence[FormName]
    lane: Lane
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """What a step's time is bounded by; `compute` in operations a second, None left out."""

    bandwidth: Bandwidth
    compute: float | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """The planned forms of one model, and their numbers at position `at`."""

    config: ModelConfig
    options: Options
    context: int
    at: int
    machine: Machine
    steps: Mapping[FormName, PlannedStep]
    summaries: Mapping[FormName, Summary]

    def json(self) -> dict[str, Any]:
        """The JSON object of a report: the model, the machine, and an object for each form."""
        bandwidth, compute = self.machine.bandwidth, self.machine.compute
        rate = bandwidth.bytes_per_second
        return {
            "model": self.config.name,
            "architecture": self.config.architecture,
            "layers": self.config.layers,
            "numerics": self.options.numerics,
            "context": self.context,
            "at": self.at,
            "held": list(self.options.held),
            "bandwidth": {"bytes_per_second": rate, "measured": bandwidth.measured},
            "compute": compute,
            **{form: summary.json(rate, compute) for form, summary in self.summaries.items()},
        }


def survey(shape: Shape, choices: Choices, machine: Machine) -> Survey:
    """Plan and count; a position that the context does not have is a `CallerError`."""
    context = served_context(shape, choices.options)
    at = (context + 1) // 2 if choices.at is None else choices.at
    if not 1 <= at <= context:
        raise CallerError(f"position {at}: a sequence has positions 1 to {context}")
    steps = {form: plan_step(shape, form, choices.options, choices.lane) for form in choices.forms}
    summaries = {form: summarize(step, at) for form, step in steps.items()}
    return Survey(shape.config, choices.options, context, at, machine, steps, summaries)
