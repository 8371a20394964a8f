"""The checker of a StepGraph: every problem at once, or one error that names them.

A rule is a row: `GRAPH_RULES` look at the graph as a whole, `shape_rows` and `attribute_rows` at
one op with what is known where it stands. One cause gives one problem: where the shape of an op's
result is in doubt, what hangs on it is not looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bedstone.errors import CallerError
from bedstone.graph.check_ops import attribute_rows, shape_rows
from bedstone.graph.check_scope import Rows, Scope
from bedstone.graph.check_whole import GRAPH_RULES, const_problem
from bedstone.graph.infer import declared, results
from bedstone.graph.refs import reads, writes
from bedstone.graph.step import Op, StepGraph


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: its name, the tensor (or part of the graph) at fault, and what is wrong."""

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: `{self.where}`: {self.message}"


def require(graph: StepGraph) -> None:
    """Raise a `CallerError` that names every problem, one a line, unless there is none."""
    problems = check(graph)
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise CallerError(f"the {graph.form} step graph of `{graph.model}` is not legal:\n{lines}")


def check(graph: StepGraph) -> list[Problem]:
    """Every problem of `graph`; none when it is legal."""
    whole = [
        Problem(rule, where, message)
        for rule, broken in GRAPH_RULES
        for where, message in broken(graph)
    ]
    return whole + list(_ops(graph))


def _ops(graph: StepGraph) -> Iterator[Problem]:
    sound = {name: c for name, c in graph.consts.items() if const_problem(c) is None}
    known = declared(replace(graph, consts=sound))
    scope = Scope(graph, known, {name: name for name in graph.tables})
    made = known.keys() | graph.consts.keys()
    for op in graph.ops:
        names = set(reads(op))
        yield from (Problem("ref", op.out, _unknown(graph, n)) for n in sorted(names - made))
        yield from _stale(op, scope)
        if names <= known.keys():
            yield from _op(op, scope)
        scope.note(op)
        made.update(writes(op))


def _op(op: Op, scope: Scope) -> Iterator[Problem]:
    """The op's own problem; its result becomes known unless its shape is in doubt."""
    shape = _first_broken(shape_rows(op, scope))
    message = shape or _first_broken(attribute_rows(op, scope))
    if message is not None:
        yield Problem(type(op).__name__.lower(), op.out, message)
    if shape is None:
        for name, found in results(op, scope.known).items():
            scope.known[name] = found
            stated = scope.graph.values.get(name)
            if scope.graph.values and stated != found:
                yield Problem("values", name, f"`values` says {stated}, the op makes {found}")


def _first_broken(rows: Rows) -> str | None:
    return next((message for holds, message in rows if not holds), None)


def _unknown(graph: StepGraph, name: str) -> str:
    later = any(name in writes(op) for op in graph.ops)
    return f"reads `{name}`, which " + ("is made later" if later else "nothing makes")


def _stale(op: Op, scope: Scope) -> Iterator[Problem]:
    for name in sorted(set(reads(op))):
        table = scope.versions.get(name)
        if table is not None and scope.latest.get(table, table) != name:
            newer = scope.latest[table]
            yield Problem("version", op.out, f"reads `{name}` after `{newer}` overwrote its rows")
