"""The kernels that a schedule's launches call, each with its numbers at their most."""

from collections.abc import Iterator, Mapping

from bedstone.build.operand import Operands
from bedstone.build.operands import operands
from bedstone.build.ops import Sizes
from bedstone.build.protocol import PAGE
from bedstone.lane.entries import entry
from bedstone.lane.schedule import Schedule
from bedstone.library.kernel import Kernel, KernelSet
from bedstone.spec.manifest import ScalarParam

Numbers = Mapping[str, int | float]
"""The number of each scalar parameter."""


def launches(
    schedule: Schedule, kernels: KernelSet, context: int
) -> Iterator[tuple[Kernel, Numbers]]:
    """Each launch of a schedule in order, of a step that serves `context` positions."""
    sizes = Sizes(schedule.rows, None, PAGE, -(-context // PAGE), None)
    for step in schedule.steps:
        given = operands(step.launch)
        kernel = kernels.kernels[entry(step.launch)]
        yield kernel, scalars(kernel, given, sizes)


def scalars(kernel: Kernel, given: Operands, sizes: Sizes) -> dict[str, int | float]:
    """The number of each scalar parameter, where `sizes` has none that vary."""
    found: dict[str, int | float] = {}
    for param in kernel.params:
        if isinstance(param.type, ScalarParam):
            number = sizes.number(given[param.name])
            if isinstance(number, (int, float)):
                found[param.name] = number
    return found
