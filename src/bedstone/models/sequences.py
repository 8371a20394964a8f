"""What belongs to one sequence: its rows of a step, its tables, its params.

Names of what belongs to one sequence end in `own`: "" in a step of one sequence, `.{i}` in a batch.
"""

from collections.abc import Callable, Mapping

from bedstone.graph.step import Fixed, Out, Ref, Row, Set, Table
from bedstone.models.body import Body

Rows = Mapping[str, Ref]
"""Tensors of a step, or of one sequence of it, by role."""


def each_sequence(
    body: Body, layer: int, xs: Rows, width: int, make: Callable[[str, Rows], Ref]
) -> Ref:
    """What `make` makes, `width` values a row, of the rows `xs` of each sequence and its `own`.

    A batch holds a sequence a row: each has its own rows taken, and what is made of them put back
    together.
    """
    build = body.build
    if build.form != "batch":
        return make("", xs)
    rows = build.table(Table(f"l{layer}.rows", build.rows, width, scratch=True))
    for i in range(build.rows):
        taken = {
            role: build.add(Row(x, Out(f"l{layer}.{role}.{i}"), Fixed(i))) for role, x in xs.items()
        }
        made = make(f".{i}", taken)
        rows = build.add(Set(rows, made, Out(f"l{layer}.rows@{i + 1}"), Fixed(i)))
    return rows
