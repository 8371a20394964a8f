"""A folder of Definitions, Solutions, Workloads and Traces, laid out as FlashInfer-Bench does.

    definitions/<op_type>/<definition>.json
    solutions/<author>/<op_type>/<definition>/<solution>.json
    workloads/<op_type>/<definition>.jsonl
    traces/<author>/<op_type>/<definition>.jsonl

A file that cannot be read is told of and left out; it takes no other with it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bedstone.errors import BedstoneError, CallerError, DefinitionError
from bedstone.prove.append import append_lines, read_lines
from bedstone.spec.definition import Definition
from bedstone.spec.dialect.document import emit_line, emit_text, parse_text
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.dialect.solution import emit_solution, parse_solution
from bedstone.spec.dialect.trace import emit_trace, parse_trace
from bedstone.spec.solution import Solution
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Workload

_LONGEST_NAME = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file, or a line of one, that was left out."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class TraceSet:
    """What a folder holds; Solutions, Workloads and Traces by the name of their Definition."""

    root: Path
    definitions: dict[str, Definition]
    solutions: dict[str, list[Solution]]
    workloads: dict[str, list[Workload]]
    traces: dict[str, list[Trace]]
    unreadable: tuple[Unreadable, ...] = ()

    def definition(self, name: str) -> Definition:
        """The Definition of that name; a `CallerError` where there is none."""
        if name not in self.definitions:
            raise CallerError(f"`{self.root}` has no definition `{name}`")
        return self.definitions[name]

    def solution(self, definition: str, name: str) -> Solution:
        """A Solution of a Definition; a `CallerError` where there is none of that name."""
        for solution in self.solutions.get(definition, []):
            if solution.name == name:
                return solution
        raise CallerError(f"`{self.root}` has no solution `{name}` of `{definition}`")

    def every_trace(self) -> list[Trace]:
        """The Traces of every Definition."""
        return [trace for traces in self.traces.values() for trace in traces]


def read_trace_set(root: Path) -> TraceSet:
    """Read all that a folder holds.

    Args:
        root: The folder.

    Returns:
        What could be read, and what could not and why.

    Raises:
        CallerError: there is no such folder.
    """
    if not root.is_dir():
        raise CallerError(f"`{root}` is no folder")
    reader = _Reader(root)
    return TraceSet(
        root,
        reader.named("definitions", parse_definition),
        reader.grouped("solutions", parse_solution),
        {name: [t.workload for t in traces] for name, traces in reader.lines("workloads").items()},
        reader.lines("traces"),
        tuple(reader.unreadable),
    )


class _Reader:
    def __init__(self, root: Path) -> None:
        self._root = root
        self.unreadable: list[Unreadable] = []

    def named(self, folder: str, parse: Any) -> dict[str, Definition]:  # noqa: ANN401
        found: dict[str, Definition] = {}
        for path, value in self._files(folder, parse):
            if value.name in found:
                self.unreadable.append(Unreadable(path, f"a second `{value.name}`"))
            else:
                found[value.name] = value
        return found

    def grouped(self, folder: str, parse: Any) -> dict[str, list[Solution]]:  # noqa: ANN401
        found: dict[str, list[Solution]] = defaultdict(list)
        for path, value in self._files(folder, parse):
            if any(value.name == other.name for other in found[value.definition]):
                self.unreadable.append(Unreadable(path, f"a second `{value.name}`"))
            else:
                found[value.definition].append(value)
        return dict(found)

    def _files(self, folder: str, parse: Any) -> Iterator[tuple[Path, Any]]:  # noqa: ANN401
        for path in sorted((self._root / folder).rglob("*.json")):
            try:
                yield path, parse(parse_text(path.read_bytes()).value).require(path.stem)
            except (BedstoneError, OSError) as error:
                self.unreadable.append(Unreadable(path, str(error)))

    def lines(self, folder: str) -> dict[str, list[Trace]]:
        found: dict[str, list[Trace]] = defaultdict(list)
        for path in sorted((self._root / folder).rglob("*.jsonl")):
            for line in read_lines(path):
                try:
                    value = parse_text(line).value
                    trace = parse_trace(value, path.stem).require(path.stem)
                except DefinitionError as error:
                    self.unreadable.append(Unreadable(path, str(error)))
                else:
                    found[trace.definition].append(trace)
        return dict(found)


def write_definition(root: Path, definition: Definition) -> Path:
    """Write a Definition into a set, over one of its name; where it lies."""
    path = root / "definitions" / _op_type(definition) / f"{_file_name(definition.name)}.json"
    _write(path, emit_text(emit_definition(definition).value))
    return path


def write_solution(root: Path, definition: Definition, solution: Solution) -> Path:
    """Write a Solution of a Definition into a set, over one of its name; where it lies."""
    folder = root / "solutions" / _file_name(solution.author) / _op_type(definition)
    path = folder / _file_name(definition.name) / f"{_file_name(solution.name)}.json"
    _write(path, emit_text(emit_solution(solution, "fib").value))
    return path


def append_workloads(root: Path, definition: Definition, workloads: Sequence[Workload]) -> Path:
    """Add Workloads of a Definition to a set; the file they are in."""
    path = root / "workloads" / _op_type(definition) / f"{_file_name(definition.name)}.jsonl"
    traces = [Trace(definition.name, workload) for workload in workloads]
    append_lines(path, [emit_line(emit_trace(trace).value) for trace in traces])
    return path


def append_traces(root: Path, definition: Definition, author: str, traces: Sequence[Trace]) -> Path:
    """Add Traces of an author's Solutions of a Definition to a set; the file they are in."""
    folder = root / "traces" / _file_name(author) / _op_type(definition)
    path = folder / f"{_file_name(definition.name)}.jsonl"
    append_lines(path, [emit_line(emit_trace(trace).value) for trace in traces])
    return path


def _op_type(definition: Definition) -> str:
    return _file_name(definition.op_type or "unknown")


def _file_name(name: str) -> str:
    """A name as part of a path; a `DefinitionError` for one that would lead elsewhere."""
    if name in ("", ".", "..") or len(name) > _LONGEST_NAME or set(name) & set("/\\\0"):
        raise DefinitionError(f"`{name[:60]}` cannot be the name of a file")
    return name


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
