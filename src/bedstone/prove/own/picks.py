"""Kernels picked by Traces: of the sets that a target inherits from, the one measured fastest."""

import hashlib
from collections.abc import Sequence

from bedstone.build.launches import Numbers
from bedstone.build.picks import Verdict
from bedstone.library.kernel import Kernel
from bedstone.library.mathematics import define, family_of
from bedstone.prove.choose import Choice, choose
from bedstone.prove.own.planned import called, scaled
from bedstone.prove.own.solutions import kernel_solution
from bedstone.prove.trace_set import TraceSet
from bedstone.spec.definition import Definition
from bedstone.spec.dialect.document import emit_line
from bedstone.spec.dialect.trace import emit_trace
from bedstone.spec.solution import Solution
from bedstone.target.hardware import HardwareSet
from bedstone.target.sources import Sources, read_sources


class TracePicks:
    """Picks each launch's kernel by what was measured at its sizes, made small as Workloads are.

    The target's own kernel stays where another was not measured to be faster on this device, with
    the code that would be compiled now.

    Args:
        traces: What was measured.
        own: The target's sources.
        device: The device as Traces name it.
    """

    def __init__(self, traces: TraceSet, own: Sources, device: str) -> None:
        self._traces = traces
        self._own = own
        self._device = device
        self._others = [read_sources(each) for each in inherited(own.hardware)]
        self._known: dict[tuple[str, tuple[tuple[str, int], ...]], Verdict] = {}

    @property
    def identity(self) -> str:
        """The sha256 of every Trace, and the device."""
        digest = hashlib.sha256(self._device.encode())
        for trace in self._traces.every_trace():
            digest.update(emit_line(emit_trace(trace).value).encode() + b"\n")
        return digest.hexdigest()

    def pick(self, kernel: Kernel, numbers: Numbers) -> Verdict:
        """The verdict on a kernel at these sizes."""
        sizes = scaled(called(kernel, numbers), kernel).sizes()
        definition = define(kernel, sizes)
        axes = {name: int(sizes[name]) for name in definition.var_axes}
        key = (definition.name, tuple(sorted(axes.items())))
        if key not in self._known:
            numbers = {**family_of(kernel.entry).defaults, **sizes}
            self._known[key] = self._verdict(kernel, definition, numbers, axes)
        return self._known[key]

    def _verdict(
        self, kernel: Kernel, definition: Definition, numbers: Numbers, axes: dict[str, int]
    ) -> Verdict:
        traces = self._traces.traces.get(definition.name)
        if not traces:
            return Verdict(None, "never measured")
        solutions = [
            kernel_solution(kernel, definition, numbers, sources)
            for sources in (self._own, *self._others)
        ]
        choice = choose(definition, solutions, traces, axes, self._device)
        return decide(choice, solutions)


def inherited(hardware: HardwareSet) -> list[HardwareSet]:
    """The sets with kernels that a CPU's set inherits from; a GPU runs no other set's."""
    farther = [each for each in hardware.chain if each.name != hardware.name]
    return [each for each in farther if hardware.vendor == each.vendor == "cpu"]


def decide(choice: Choice, solutions: Sequence[Solution]) -> Verdict:
    """The verdict that a choice comes to, the first of the Solutions being the target's own."""
    own = solutions[0]
    (hardware,) = own.spec.target_hardware
    against = {reason.solution: reason.why for reason in choice.others}
    if choice.solution is None or not (
        choice.solution is own or against[own.name].startswith("slower")
    ):
        return Verdict(None, f"`{hardware}` is {against[own.name]}")
    (chosen,) = choice.solution.spec.target_hardware
    others = "; ".join(
        f"`{s.spec.target_hardware[0]}` is {against[s.name]}"
        for s in solutions
        if s.name in against
    )
    reason = f"{choice.latency_ms:.4g} ms; {others}"
    return Verdict(None if choice.solution is own else chosen, reason)
