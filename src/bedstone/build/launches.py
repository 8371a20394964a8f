"""The kernels that a schedule calls, each with its numbers at their most."""

from collections.abc import Iterator, Mapping

from bedstone.build.joined import Together, joined
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
    """Each call of a schedule in order, of a step that serves `context` positions."""
    sizes = _sizes(schedule, context)
    for call in joined(schedule, kernels, sizes):
        launch = schedule.steps[call.places.start].launch
        if call.join is None:
            kernel, given = kernels.kernels[entry(launch)], operands(launch)
        else:
            kernel, given = call.join.kernel, call.given
        yield kernel, scalars(kernel, given, sizes)


def calls(schedule: Schedule, kernels: KernelSet, context: int) -> tuple[Together, ...]:
    """The launches of a schedule as kernels do them, of a step that serves `context` positions."""
    return tuple(joined(schedule, kernels, _sizes(schedule, context)))


def _sizes(schedule: Schedule, context: int) -> Sizes:
    return Sizes(schedule.rows, None, PAGE, -(-context // PAGE), None)


def scalars(kernel: Kernel, given: Operands, sizes: Sizes) -> dict[str, int | float]:
    """The number of each scalar parameter, where `sizes` has none that vary."""
    found: dict[str, int | float] = {}
    for param in kernel.params:
        if isinstance(param.type, ScalarParam):
            number = sizes.number(given[param.name])
            if isinstance(number, (int, float)):
                found[param.name] = number
    return found
