"""What an op is held against at given sizes: its Definition, on inputs that are made for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bedstone.errors import DefinitionError
from bedstone.library.mathematics import define, family_of, reaches
from bedstone.prove.config import Config
from bedstone.prove.kernel.case import Judged, Posed, judge_call
from bedstone.prove.kernel.identify import Known
from bedstone.prove.kernel.rig import Given, Left
from bedstone.prove.lazy import Trial
from bedstone.prove.own.planned import Called, scaled
from bedstone.prove.problem import Problem, Source
from bedstone.prove.reference import Reference
from bedstone.prove.results import Expected
from bedstone.prove.tensors import Made, as_bytes, nbytes, stored_shape, torch_dtype
from bedstone.spec.definition import Definition
from bedstone.spec.manifest import Manifest
from bedstone.spec.workload import Workload

ROWS = (1, 37)
"""Rows of calls whose inputs are made: the one of a step, and more than any tile divides."""

_TRIALS = 2
Bytes = NDArray[np.uint8]
Sizes = Mapping[str, int | float]


def environments(known: Known, manifest: Manifest) -> list[dict[str, int]]:
    """Values of the op's vars to try: few rows and many; what counts no rows is twice as many."""
    found: list[dict[str, int]] = []
    for rows in ROWS:
        env = {}
        for name in known.vars:
            var = manifest.vars[name]
            env[name] = min(rows if var.axis in {"rows", "groups"} else 2 * rows, var.max)
        if env not in found:
            found.append(env)
    return found


@dataclass(frozen=True, slots=True)
class MadeCase:
    """A call whose inputs were made, under some vars."""

    posed: Posed
    env: Mapping[str, int]
    number: int
    trial: Trial

    @property
    def where(self) -> str:
        """Which inputs these are."""
        sizes = ", ".join(f"{name}={value}" for name, value in sorted(self.env.items()))
        return f"made inputs {self.number}" + (f", {sizes}" if sizes else "")

    def given(self) -> Given:
        """The memory of the call."""
        memory, outputs = self.posed.known.memory, self.posed.outputs
        inputs = {n: to_bytes(v) for n, v in self.trial.inputs.items() if n in memory}
        own = (output for output in outputs if output.target is None)
        return Given(inputs, {o.name: nbytes(o.dtype, o.shape or ()) for o in own}, self.env)

    def judged(self, left: Left) -> Judged:
        """Hold what the call left against the reference."""
        found = {o.name: to_tensor(left.outputs[o.target or o.name], o) for o in self.posed.outputs}
        return judge_call(self.posed, self.where, self.trial, found, left.faults)


def made_cases(known: Known, manifest: Manifest, seed: int) -> Iterator[MadeCase]:
    """Calls on inputs made as the Definition has it; what it is no fair problem for raises."""
    for env in environments(known, manifest):
        numbers = known.at(env)
        definition = definition_at(known, numbers, _made_axes(known, numbers))
        axes = {name: int(numbers[name]) for name in definition.var_axes}
        workload = Workload(axes, {}, f"{known.name} {sorted(axes.items())}")
        problem = Problem(definition, workload, Config(trials=_TRIALS, seed=seed), Source())
        posed = Posed(known, definition, problem.outputs)
        for number, trial in enumerate(problem.trials):
            yield MadeCase(posed, env, number, _with_tables(known, problem, trial))


def _with_tables(known: Known, problem: Problem, trial: Trial) -> Trial:
    """The trial with what the launch itself passes by value."""
    if not known.tables:
        return trial
    inputs = {**trial.inputs, **tables(known)}
    return Trial(inputs, Reference(problem.definition).run(inputs, problem.sizes, 0))


def tables(known: Known) -> dict[str, torch.Tensor]:
    """What a launch passes by value."""
    return {name: torch.tensor(values) for name, values in known.tables.items()}


def _made_axes(known: Known, numbers: Sizes) -> Sizes:
    """Sizes of axes that are no parameters: small ones."""
    small = scaled(Called(known.entry, tuple(sorted(numbers.items()))), known.kernel).sizes()
    stored = int(max(small.get("stored", 0), numbers.get("row", 0) + 1))
    return {**small, "stored": stored}


def definition_at(known: Known, numbers: Sizes, axes: Sizes) -> Definition:
    """The op's Definition at these numbers; `axes` are sizes that are no parameters."""
    family = family_of(known.entry)
    found = {**family.defaults, **axes, **numbers}
    whole = {name: value for name, value in found.items() if isinstance(value, int)}
    for name, reach in reaches(known.kernel, family, whole).items():
        # of one row nobody asks where the next begins: it need not lie behind what is read
        found[name] = max(found[name], reach)
    return define(known.kernel, found, known.entry)


def to_bytes(value: Made | None) -> Bytes:
    """The bytes of a tensor."""
    if not isinstance(value, torch.Tensor):
        raise DefinitionError(f"an input is `{value}`, expected a tensor")
    return np.asarray(as_bytes(value.contiguous()).numpy())


def to_tensor(data: Bytes, like: Expected) -> torch.Tensor:
    """Bytes as a tensor of a declared element type and shape."""
    raw = torch.from_numpy(np.ascontiguousarray(data))
    return raw.view(torch_dtype(like.dtype)).reshape(stored_shape(like.dtype, like.shape or ()))
