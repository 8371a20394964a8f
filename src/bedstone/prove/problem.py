"""What a Solution is held against: one Workload's trials and what the reference says of each."""

from dataclasses import dataclass
from pathlib import Path

import torch

from bedstone.errors import CapacityError, DefinitionError
from bedstone.prove.config import Config
from bedstone.prove.distribution import DRAWS, weights_of
from bedstone.prove.environment import free_memory
from bedstone.prove.inputs.make import seed_of
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.lazy import Trial, passing_lazily, same_inputs
from bedstone.prove.reference import Reference, expected_outputs
from bedstone.prove.results import Expected
from bedstone.prove.sandbox.candidate import SLOTS, Layout
from bedstone.prove.tensors import as_bytes, as_numbers, nbytes
from bedstone.spec.axes import Shape, axis_values, shape_of
from bedstone.spec.definition import Definition
from bedstone.spec.element import ELEMENTS
from bedstone.spec.workload import Tolerance, Workload

_REPEATS = 4

_WIDENED_COPIES = 3
"""Copies in float32 that a step-by-step reference may hold of every tensor at once."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where stored inputs lie, and whether made ones may take the place of missing ones."""

    root: Path | None = None
    stand_in: bool = False


class Problem:
    """A Workload of a Definition, with the reference's answers; Solutions share it.

    `fresh` is whether inputs differ from call to call: where all are stored, an answer kept from an
    earlier call cannot be told from a new one. `drawn` is whether the reference draws at random.

    What makes it no fair problem is a `DefinitionError`: a reference that fails or gives NaN, a
    tolerance under which an answer without work passes. More memory than there is, is a
    `CapacityError`.
    """

    def __init__(
        self, definition: Definition, workload: Workload, config: Config, source: Source
    ) -> None:
        self.definition = definition
        self.workload = workload
        self.config = config
        self.tolerance: Tolerance | None = config.tolerance or workload.tolerance
        self.sizes = axis_values(definition, workload.axes)
        _require_memory(definition, self.sizes, free_memory())
        self._inputs = Inputs(definition, workload, source.root, stand_in=source.stand_in)
        self._reference = Reference(definition)
        self.outputs: tuple[Expected, ...] = tuple(expected_outputs(definition, self.sizes))
        self.trials = tuple(self.trial(number) for number in range(config.trials))
        self.fresh = not same_inputs(self.trials[0], self.trials[-1])
        self.drawn = self._is_drawn()
        if not self.drawn:
            self._require_work()
        self.layout = self._layout()

    def trial(self, number: int) -> Trial:
        """The inputs and expected outputs of one call; the same number has the same values."""
        values = self._inputs.trial(self.config.seed, number)
        seed = seed_of(self.workload.uuid, self.config.seed, number)
        expected = self._reference.run(values, self.sizes, seed)
        self._require_numbers(expected)
        return Trial(values, expected)

    def inputs(self, number: int) -> dict[str, torch.Tensor | bool | int | float | None]:
        """The inputs alone."""
        return self._inputs.trial(self.config.seed, number)

    def draws(self, trial: Trial) -> list[dict[str, torch.Tensor]]:
        """The reference's outputs for a trial's inputs under many seeds."""
        seeds = (seed_of(self.workload.uuid, self.config.seed, "draw", n) for n in range(DRAWS))
        return [self._reference.run(trial.inputs, self.sizes, seed) for seed in seeds]

    def _is_drawn(self) -> bool:
        """Whether the reference draws its outputs: under other seeds they are others."""
        first = self.trials[0]
        # a draw may repeat by chance, a float hardly
        whole = any(ELEMENTS[output.dtype].kind == "int" for output in self.outputs)
        times = range(_REPEATS if whole else 1)
        seeds = (seed_of(self.workload.uuid, self.config.seed, "again", n) for n in times)
        again = [self._reference.run(first.inputs, self.sizes, seed) for seed in seeds]
        random = [
            name
            for name, value in first.expected.items()
            if value.numel()
            and not all(torch.equal(as_bytes(value), as_bytes(one[name])) for one in again)
        ]
        for name in random:
            value = first.expected[name]
            if value.is_floating_point() or weights_of(first.inputs, value) is None:
                raise DefinitionError(
                    f"the reference of `{self.definition.name}` draws `{name}` at random, and no "
                    f"input tells how likely each value is"
                )
        return bool(random)

    def _require_work(self) -> None:
        lazy = passing_lazily(self.trials, self.outputs, self.tolerance)
        if lazy is not None:
            raise DefinitionError(
                f"workload `{self.workload.uuid}` of `{self.definition.name}` proves nothing: "
                f"{lazy} would pass, so the tolerance is vacuous"
            )

    def _require_numbers(self, expected: dict[str, torch.Tensor]) -> None:
        for output in self.outputs:
            if ELEMENTS[output.dtype].kind == "float":
                wrong = as_numbers(expected[output.name]).isnan()
                if bool(wrong.any()):
                    at = [int(i) for i in wrong.nonzero()[0]]
                    raise DefinitionError(
                        f"the reference of `{self.definition.name}` gives NaN in `{output.name}` "
                        f"at {at} for workload `{self.workload.uuid}`"
                    )

    def _layout(self) -> Layout:
        first = self.trials[0].inputs
        tensors: dict[str, tuple[str, Shape]] = {
            name: (spec.dtype, shape_of(spec, self.sizes) or ())
            for name, spec in self.definition.inputs.items()
            if isinstance(first[name], torch.Tensor)
        }
        return Layout(tensors, tuple(self.definition.inputs), self.outputs)


def moved_bytes(definition: Definition, sizes: dict[str, int]) -> int:
    """Bytes a call moves at least: every input read and every output written, once each.

    Where an input picks rows of others, those may be read in part: then only outputs count.
    """
    outputs = _bytes(definition, sizes, ("outputs",))
    picks = any(
        spec.shape and ELEMENTS[spec.dtype].kind == "int" and ELEMENTS[spec.dtype].bits >= 32
        for spec in definition.inputs.values()
    )
    return outputs if picks else outputs + _bytes(definition, sizes, ("inputs",))


def _bytes(definition: Definition, sizes: dict[str, int], sections: tuple[str, ...]) -> int:
    return sum(
        nbytes(spec.dtype, shape_of(spec, sizes) or ())
        for section in sections
        for spec in getattr(definition, section).values()
        if spec.shape is not None and ELEMENTS[spec.dtype].bits
    )


def _require_memory(definition: Definition, sizes: dict[str, int], free: int) -> None:
    """Refuse sizes whose tensors, slots and widened copies exceed what is free."""
    plain = _bytes(definition, sizes, ("inputs", "outputs"))
    values = sum(
        torch.Size(shape_of(spec, sizes) or ()).numel() for spec in definition.inputs.values()
    )
    needed = plain * (SLOTS + 2) + values * 4 * _WIDENED_COPIES
    if needed > free:
        raise CapacityError(
            f"`{definition.name}` needs about {needed / 2**30:.1f} GiB at sizes "
            f"{dict(sizes)}, found {free / 2**30:.1f} GiB free"
        )
