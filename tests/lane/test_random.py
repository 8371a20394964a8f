"""Random steps: the lane never fails on a legal graph, and what it makes computes the graph."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bedstone.graph.parse import parse
from bedstone.graph.step import Fixed, Row, Set, StepGraph
from bedstone.lane.facts import Knobs
from bedstone.lane.launch import Sequences, TakeRow
from bedstone.lane.plan import RULES
from lane_graphs import lowered, outcome, same, setting, truth
from lane_random import random_step

NUMBERS = st.lists(st.integers(0, 1023), min_size=40, max_size=140)
QUIET = settings(derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=150)


@QUIET
@given(numbers=NUMBERS, held=st.sets(st.sampled_from(RULES)), quantized=st.booleans())
def test_any_step_is_lowered_to_what_computes_it(
    numbers: list[int], held: set[str], quantized: bool
) -> None:
    graph = random_step(numbers)
    numerics: Any = "quantized" if quantized else "precise"
    given_ = setting(graph)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = truth(graph, given_, numerics)
        for options in ({}, {"held": tuple(held)}, {"knobs": Knobs(fuse_quant=False)}):
            schedule = lowered(graph, numerics, **options)
            assert same(outcome(schedule, given_), expected)


# --- rows of a table that is written meanwhile --------------------------------------------------

TEXT = """\
graph(model=t, form=batch, rows=4, params=(pos.0, pos.1, pos.2, pos.3), outputs=(logits, next))
E = const(format=q8_0, shape=(48, {width}))
W = const(format=q8_0, shape=({width}, {width}))
S = table(capacity=4, width={width}, scratch=true)
token = carried(rows=4)
x = embed(ids=token, table=E)
{body}
logits = linear(x=x, w=E)
next = argmax(x=logits)
"""


def rows_and_sets(numbers: list[int]) -> StepGraph:
    """Rows of a scratch table taken and read again later, its rows written in between."""
    width = 32 if numbers[0] % 2 else 64
    lines = [f"i{r} = row(x=x, at=fixed(row={r}))" for r in range(4)]
    lines += [
        f"S@{r + 1} = set(table=S{f'@{r}' if r else ''}, x=i{r}, at=fixed(row={r}))"
        for r in range(4)
    ]
    version, rows = 4, ["i0"]
    for at, number in enumerate(numbers):
        match number % 3:
            case 0:
                lines.append(f"r{at} = row(x=S@{version}, at=fixed(row={number % 4}))")
                rows.append(f"r{at}")
            case 1:
                lines.append(f"c{at} = linear(x={rows[number % len(rows)]}, w=W)")
                rows.append(f"c{at}")
            case _:
                x = rows[number % len(rows)]
                row = f"at=fixed(row={number % 4})"
                lines.append(f"S@{version + 1} = set(table=S@{version}, x={x}, {row})")
                version += 1
    return parse(TEXT.format(body="\n".join(lines), width=width))


def copied(graph: StepGraph) -> set[str]:
    """The rows whose table is written after they are taken and no later than they are last read."""
    found = set()
    for at, op in enumerate(graph.ops):
        if isinstance(op, Row) and op.x.startswith("S"):
            reads = [i for i, other in enumerate(graph.ops) if op.out in _read(other)]
            writes = [i for i, other in enumerate(graph.ops) if isinstance(other, Set) and i > at]
            if reads and writes and writes[0] <= reads[-1]:
                found.add(op.out)
    return found


def _read(op: Any) -> tuple[str, ...]:
    return (op.x,) if hasattr(op, "x") else ()


@QUIET
@given(numbers=st.lists(st.integers(0, 500), min_size=3, max_size=24))
def test_a_row_is_copied_where_its_table_is_written_before_it_is_last_read(
    numbers: list[int],
) -> None:
    graph = rows_and_sets(numbers)
    schedule = lowered(graph, held=RULES)
    taken = {
        step.launch.dst.tensor
        for step in schedule.steps
        if not isinstance(step.launch, Sequences)
        and isinstance(step.launch, TakeRow)
        and step.launch.at == Fixed(0)
    }
    assert taken == copied(graph)
    assert same(outcome(schedule, setting(graph)), truth(graph, setting(graph)))
