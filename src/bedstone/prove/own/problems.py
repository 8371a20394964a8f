"""Each kernel at each of its sizes: the Definition, the Workloads, and a Solution of every set."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid5

from bedstone.library.kernel import Kernel, KernelSet
from bedstone.library.mathematics import define, family_of
from bedstone.prove.own.planned import Called
from bedstone.prove.own.solutions import kernel_solution
from bedstone.prove.trace_set import append_workloads, write_definition, write_solution
from bedstone.spec.definition import Definition
from bedstone.spec.solution import Solution
from bedstone.spec.workload import Tolerance, Workload
from bedstone.target.sources import Sources

_NAMES = UUID("6d1a4f0e-64c2-5b0f-9d0c-2a8f3c1f7b11")

CODES = Tolerance(steps=2)
"""Of outputs that are quantized: where a value lies between two codes, a rounding decides."""


@dataclass(frozen=True, slots=True)
class OwnProblem:
    """One kernel at one choice of constants, and the sizes it is tried at."""

    kernel: Kernel
    definition: Definition
    numbers: Mapping[str, int | float]
    workloads: tuple[Workload, ...]

    def solutions(self, sources: Iterable[Sources]) -> tuple[Solution, ...]:
        """The kernel as each of these sets has it."""
        return tuple(
            kernel_solution(self.kernel, self.definition, self.numbers, own) for own in sources
        )


def own_problems(calls: Iterable[Called], kernels: KernelSet) -> Iterator[OwnProblem]:
    """The Definitions of calls, those that differ in a Workload's sizes alone together."""
    grouped: dict[str, tuple[Called, Definition, dict[str, Workload]]] = {}
    for call in calls:
        definition = define(kernels.kernels[call.entry], call.sizes())
        _, _, workloads = grouped.setdefault(definition.name, (call, definition, {}))
        workload = _workload(definition, call.sizes())
        workloads[workload.uuid] = workload
    for call, definition, workloads in grouped.values():
        defaults = family_of(call.entry).defaults
        numbers = {**defaults, **call.sizes()}
        yield OwnProblem(
            kernels.kernels[call.entry], definition, numbers, tuple(workloads.values())
        )


def _workload(definition: Definition, sizes: Mapping[str, int | float]) -> Workload:
    axes = {name: int(sizes[name]) for name in definition.var_axes}
    codes = any(spec.dtype == "int8" for spec in definition.outputs.values())
    uuid = str(uuid5(_NAMES, f"{definition.name} {sorted(axes.items())}"))
    return Workload(axes, {}, uuid, CODES if codes else None)


def write_problem(root: Path, problem: OwnProblem, sources: Sequence[Sources]) -> None:
    """Add a problem to a set: its Workloads are those that are not there yet."""
    write_definition(root, problem.definition)
    for solution in problem.solutions(sources):
        write_solution(root, problem.definition, solution)
    append_workloads(root, problem.definition, problem.workloads)
