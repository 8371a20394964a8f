"""Each kernel at each of its sizes: the Definition, the Workloads, and a Solution of every set."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from uuid import UUID, uuid5

from bedstone.library.kernel import Kernel, KernelSet
from bedstone.library.mathematics import (
    define,
    family_of,
    may_round,
    rounded_codes,
    rounded_tables,
)
from bedstone.prove.own.planned import Called, kernel_of
from bedstone.prove.own.solutions import kernel_solution
from bedstone.prove.reference import expected_outputs
from bedstone.prove.trace_set import append_workloads, write_definition, write_solution
from bedstone.spec.axes import axis_values
from bedstone.spec.definition import Definition
from bedstone.spec.solution import Solution
from bedstone.spec.workload import Tolerance, Workload
from bedstone.target.sources import Sources

_NAMES = UUID("6d1a4f0e-64c2-5b0f-9d0c-2a8f3c1f7b11")

CODES = Tolerance(steps=2)
"""Of outputs that are quantized: where a value lies between two codes, a rounding decides."""

ROUNDED = Tolerance(rtol=5e-2)
"""Where codes or tables are bfloat16 a kernel may round what it multiplies, even to eight bits."""

IN_TURN = replace(ROUNDED, rtol=0.2)
"""Where four such products read each other's results: each may be off as far as it may be alone."""

ALONE = replace(ROUNDED, rtol=0.25)
"""Of an output of one value, which may be small beside what it is the sum of: nothing else says how
large that is."""

ROUNDED_CODES = replace(ROUNDED, steps=24)
"""Of codes made from such products, and of sums of 32 of them: these are off as their scale is."""


@dataclass(frozen=True, slots=True)
class OwnProblem:
    """One kernel at one choice of constants, and the sizes it is tried at.

    `kernels` are it and its variants that suit some of the Workloads, by the set's names.
    """

    kernel: Kernel
    definition: Definition
    numbers: Mapping[str, int | float]
    workloads: tuple[Workload, ...]
    kernels: Mapping[str, Kernel]

    def solutions(self, sources: Iterable[Sources]) -> tuple[Solution, ...]:
        """The kernel as each of these sets has it, and its variants."""
        return tuple(
            kernel_solution(each, self.definition, self.numbers, own, name)
            for own in sources
            for name, each in self.kernels.items()
        )


def own_problems(calls: Iterable[Called], kernels: KernelSet) -> Iterator[OwnProblem]:
    """The Definitions of calls, those that differ in a Workload's sizes alone together."""
    grouped: dict[str, tuple[Called, Definition, dict[str, Workload], dict[str, Kernel]]] = {}
    for call in calls:
        kernel = kernel_of(call.entry, kernels)
        definition = define(kernel, call.sizes(), call.entry)
        own = {call.entry: kernel} if call.entry in kernels.kernels else {}
        found = grouped.setdefault(definition.name, (call, definition, {}, own))
        workload = _workload(kernel, definition, call.sizes())
        found[2][workload.uuid] = workload
        found[3].update(_variants(call, kernels))
    for call, definition, workloads, suited in grouped.values():
        kernel, defaults = kernel_of(call.entry, kernels), family_of(call.entry).defaults
        numbers = {**defaults, **call.sizes()}
        yield OwnProblem(kernel, definition, numbers, tuple(workloads.values()), suited)


def _variants(call: Called, kernels: KernelSet) -> Iterator[tuple[str, Kernel]]:
    """The kernels that can take the place of the call's at its sizes."""
    sizes = {name: value for name, value in call.numbers if isinstance(value, int)}
    for name, suits in kernels.variants.get(call.entry, ()):
        if suits(sizes, kernels.cache):
            yield name, kernels.kernels[name]
    for name, join in kernels.alike(call.entry):
        if join.suits(sizes, kernels.cache):
            yield name, join.kernel


def _workload(kernel: Kernel, definition: Definition, sizes: Mapping[str, int | float]) -> Workload:
    axes = {name: int(sizes[name]) for name in definition.var_axes}
    uuid = str(uuid5(_NAMES, f"{definition.name} {sorted(axes.items())}"))
    outputs = expected_outputs(definition, axis_values(definition, axes))
    shapes = [output.shape or () for output in outputs]
    return Workload(axes, {}, uuid, tolerance_of(kernel, definition, shapes))


def tolerance_of(
    kernel: Kernel, definition: Definition, shapes: Iterable[Sequence[int]] = ()
) -> Tolerance | None:
    """How far a kernel may be off, whose outputs have these shapes; None for its types' own."""
    codes = any(spec.dtype == "int8" for spec in definition.outputs.values())
    if may_round(kernel) and codes:
        return ROUNDED_CODES
    if may_round(kernel) or rounded_codes(kernel) or rounded_tables(kernel):
        if any(prod(shape) == 1 for shape in shapes):
            return ALONE
        return IN_TURN if definition.op_type == "tail" else ROUNDED
    return CODES if codes else None


class Written:
    """What of our own has been added to a set; CUDA sets share Definitions with each other."""

    def __init__(self) -> None:
        self._solutions: set[tuple[str, str]] = set()
        self._workloads: set[str] = set()

    def add(self, root: Path, problem: OwnProblem, sources: Sequence[Sources]) -> None:
        """Add a problem: its Workloads are those that are not there yet."""
        definition = problem.definition
        write_definition(root, definition)
        for solution in problem.solutions(sources):
            write_solution(root, definition, solution)
            self._solutions.add((definition.name, solution.name))
        new = [each for each in problem.workloads if each.uuid not in self._workloads]
        append_workloads(root, definition, new)
        self._workloads |= {each.uuid for each in new}

    def counts(self) -> dict[str, int]:
        """How many of each there are."""
        definitions = {name for name, _ in self._solutions}
        return {
            "definitions": len(definitions),
            "solutions": len(self._solutions),
            "workloads": len(self._workloads),
        }
