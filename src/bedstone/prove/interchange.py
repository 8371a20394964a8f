"""A set as FlashInfer-Bench's own reader takes it: one file that it refuses spoils all of a set.

What it cannot say is left out, and told of.
"""

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bedstone.errors import DefinitionError
from bedstone.prove.inputs.workload import require_inside
from bedstone.prove.trace_set import (
    TraceSet,
    append_traces,
    append_workloads,
    write_definition,
    write_solution,
)
from bedstone.spec.axes import axis_values
from bedstone.spec.definition import Definition, ExprAxis
from bedstone.spec.dialect import Loss
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.dialect.solution import emit_solution
from bedstone.spec.dialect.workload import emit_workload
from bedstone.spec.solution import Solution
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Stored, Workload

KINDS = ("definition", "solution", "workload", "trace")


@dataclass
class Conversion:
    """How many of each kind were written and left out, and a line for everything lost."""

    written: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def leave_out(self, kind: str, name: str, why: object) -> None:
        """Count one that is left out, and say why."""
        self.left_out[kind] += 1
        self.lines.append(f"left out: {kind} `{name}`: {why}")

    def lose(self, kind: str, name: str, losses: Iterable[Loss]) -> bool:
        """Say what is lost of one; leave it out and answer no where its readers would refuse it."""
        fatal = [loss for loss in losses if loss.fatal]
        if fatal:
            self.leave_out(kind, name, "; ".join(map(str, fatal)))
        else:
            self.lines += [f"lost: {kind} `{name}`: {loss}" for loss in losses]
        return not fatal


def write_for_flashinfer_bench(traces: TraceSet, root: Path) -> Conversion:
    """Write a set into another folder so that FlashInfer-Bench reads all of it.

    Args:
        traces: The set.
        root: The new folder.

    Returns:
        What was written, and what was lost.
    """
    done = Conversion()
    for unreadable in traces.unreadable:
        done.lines.append(f"left out: {unreadable}")
    names: set[str] = set()
    for name, definition in sorted(traces.definitions.items()):
        emission = emit_definition(definition, "fib")
        if done.lose("definition", name, emission.losses):
            done.written["definition"] += 1
            written = parse_definition(emission.value).require(name)
            write_definition(root, written)
            _Part(traces, root, definition, done, names).write()
        else:
            done.left_out.update(_dependent(traces, name))
    for name in sorted(_named(traces) - traces.definitions.keys()):
        done.left_out.update(_dependent(traces, name))
        done.lines.append(f"left out: what belongs to `{name}`: there is no such definition")
    return done


def _named(traces: TraceSet) -> set[str]:
    return traces.solutions.keys() | traces.workloads.keys() | traces.traces.keys()


def _dependent(traces: TraceSet, name: str) -> dict[str, int]:
    """How many of each kind belong to a Definition."""
    return {
        "solution": len(traces.solutions.get(name, [])),
        "workload": len(traces.workloads.get(name, [])),
        "trace": len(traces.traces.get(name, [])),
    }


@dataclass(frozen=True, slots=True)
class _Part:
    """What belongs to one Definition; `names` are those of Solutions written so far."""

    traces: TraceSet
    root: Path
    definition: Definition
    done: Conversion
    names: set[str]

    def write(self) -> None:
        """Write Solutions, Workloads and Traces."""
        name = self.definition.name
        renamed: dict[str, str] = {}
        for solution in self._solutions():
            kept = self._solution(solution)
            if kept is not None:
                renamed[solution.name] = kept
        workloads = list(filter(self._workload, self.traces.workloads.get(name, [])))
        append_workloads(self.root, self.definition, [self._completed(on) for on in workloads])
        self.done.written["workload"] += len(workloads)
        for trace in self.traces.traces.get(name, []):
            self._trace(trace, renamed)

    def _solution(self, solution: Solution) -> str | None:
        """Write a Solution; the name that it has there."""
        places = self.definition.in_place
        if places:
            (target, *_) = places.values()
            why = f"it writes over `{target}`, and outputs have memory of their own there"
            self.done.leave_out("solution", solution.name, why)
            return None
        if not self.done.lose("solution", solution.name, emit_solution(solution, "fib").losses):
            return None
        name = solution.name
        if name in self.names:
            name = f"{name}.{self.definition.name}"
            line = f"lost: solution `{solution.name}`: a second of that name becomes `{name}`"
            self.done.lines.append(line)
        self.names.add(name)
        self.done.written["solution"] += 1
        write_solution(self.root, self.definition, replace(solution, name=name))
        return name

    def _workload(self, on: Workload) -> bool:
        """Take a Workload's stored tensors along; whether it can be written."""
        try:
            axis_values(self.definition, on.axes)
            for item in on.inputs.values():
                if isinstance(item, Stored):
                    self._take(item.path)
        except DefinitionError as error:
            self.done.leave_out("workload", on.uuid, error)
            return False
        return self.done.lose("workload", on.uuid, emit_workload(on, "fib").losses)

    def _take(self, path: str) -> None:
        source, target = (require_inside(root, path) for root in (self.traces.root, self.root))
        if source is None or target is None or not source.is_file():
            raise DefinitionError(f"`{path}` is not there")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copyfile(source, target)

    def _completed(self, on: Workload) -> Workload:
        """The Workload with a size for each computed axis, which is a variable one there."""
        sizes = axis_values(self.definition, on.axes)
        axes = self.definition.axes
        computed = {n: sizes[n] for n, axis in axes.items() if isinstance(axis, ExprAxis)}
        return replace(on, axes={**on.axes, **computed})

    def _trace(self, trace: Trace, renamed: dict[str, str]) -> None:
        """Write a Trace, if its Solution and its Workload can be."""
        solution = next((s for s in self._solutions() if s.name == trace.solution), None)
        losses = emit_workload(trace.workload, "fib").losses
        if solution is None or solution.name not in renamed or any(loss.fatal for loss in losses):
            self.done.left_out["trace"] += 1
            return
        name, on = renamed[solution.name], self._completed(trace.workload)
        moved = replace(trace, solution=name, workload=on)
        append_traces(self.root, self.definition, solution.author, [moved])
        self.done.written["trace"] += 1

    def _solutions(self) -> list[Solution]:
        return self.traces.solutions.get(self.definition.name, [])
