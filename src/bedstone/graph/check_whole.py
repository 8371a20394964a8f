"""Rules of a StepGraph as a whole: its form, its names, what it declares and how it ends.

Each yields the name at fault and what is wrong with it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, get_args

from bedstone.graph.refs import writes
from bedstone.graph.step import ArgMax, Const, Finish, FormName, Sample, StepGraph
from bedstone.spec.dtype import FORMATS

Broken = Iterator[tuple[str, str]]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def _form(graph: StepGraph) -> Broken:
    if graph.rows < 1:
        yield graph.model, f"takes {graph.rows} rows, not one or more"
    if graph.form not in get_args(FormName):
        yield graph.model, f"form `{graph.form}` is none of {', '.join(get_args(FormName))}"
    elif graph.form == "decode" and graph.rows > 1:
        yield graph.model, f"a decode step takes one row, not {graph.rows}"
    elif graph.row_param is not None and graph.form != "chunk":
        yield graph.model, f"only a chunk has variable rows, not a {graph.form} step"


def _names(graph: StepGraph) -> Broken:
    """A name means one thing: SSA, across declarations too."""
    spaces: list[Mapping[str, _Named]] = [graph.consts, graph.tables, graph.carried, graph.ropes]
    for space in spaces:
        for key, entry in space.items():
            if key != entry.name:
                yield key, f"is declared under this name but calls itself `{entry.name}`"
    made = [name for op in graph.ops for name in writes(op)]
    tensors = [name for space in spaces[:3] for name in space] + made
    for name, count in Counter(tensors).items():
        if count > 1:
            yield name, f"is made {count} times"
    for name in sorted(graph.values.keys() - set(tensors)):
        yield name, "has a value but nothing makes it"


def _params(graph: StepGraph) -> Broken:
    for name, count in Counter(graph.params).items():
        if count > 1:
            yield name, f"is declared {count} times"
    if graph.row_param is not None and graph.row_param not in graph.params:
        yield graph.row_param, "counts the rows but is not a param"


def _consts(graph: StepGraph) -> Broken:
    for const in graph.consts.values():
        message = const_problem(const)
        if message is not None:
            yield const.name, message


def const_problem(const: Const) -> str | None:
    """What is wrong with a declared constant, None where nothing is."""
    shape, form = list(const.shape), FORMATS.get(const.format)
    if form is None:
        return f"format `{const.format}` is none of {', '.join(FORMATS)}"
    if len(shape) not in (1, 2, 3) or min(shape) < 1:
        return f"shape {shape} is none of [n], [n, k] and [e, n, k]"
    if form.quantized and len(shape) == 1:
        return f"a vector cannot be held as `{const.format}`"
    if shape[-1] % form.block:
        return f"rows of {shape[-1]} are no whole blocks of {form.block} (`{const.format}`)"
    return None


def _tables(graph: StepGraph) -> Broken:
    for table in graph.tables.values():
        if min(table.capacity, table.width) < 1:
            yield table.name, f"has no room: [{table.capacity}, {table.width}]"


def _carried(graph: StepGraph) -> Broken:
    for vector in graph.carried.values():
        if vector.rows != graph.rows:
            yield vector.name, f"holds {vector.rows} ids but a step takes {graph.rows} rows"


def _ropes(graph: StepGraph) -> Broken:
    for rope in graph.ropes.values():
        if not all(math.isfinite(freq) for freq in rope.inv_freq):
            yield rope.name, "has a frequency that is not finite"
        if not (math.isfinite(rope.attention_factor) and rope.attention_factor > 0):
            yield rope.name, f"attention factor {rope.attention_factor} is not positive and finite"


def _closing(graph: StepGraph) -> Broken:
    """One arg-max closes the step, or one finish of what is drawn."""
    closing = [op.out for op in graph.ops if isinstance(op, ArgMax | Finish)]
    if len(closing) != 1:
        yield graph.model, f"has {len(closing)} arg-max or finish ops, not one"
    elif graph.ops[-1].out != closing[0]:
        yield closing[0], f"`{graph.ops[-1].out}` follows the arg-max or finish that ends the step"


def _drawing(graph: StepGraph) -> Broken:
    """A draw is closed with, and what closes with a draw has one: a step draws once."""
    draws = [str(op.out) for op in graph.ops if isinstance(op, Sample)]
    closes = [str(op.x) for op in graph.ops if isinstance(op, Finish)]
    if draws != closes:
        closed = ", ".join(f"`{name}`" for name in closes) or "nothing"
        yield graph.model, f"draws {len(draws)} times and closes with {closed}"


def _outputs(graph: StepGraph) -> Broken:
    made = {name for op in graph.ops for name in writes(op)}
    if not graph.outputs:
        yield graph.model, "has no outputs"
    for name in graph.outputs:
        if name not in made:
            yield name, "is an output but nothing makes it"


GRAPH_RULES: tuple[tuple[str, Callable[[StepGraph], Broken]], ...] = (
    ("form", _form),
    ("ssa", _names),
    ("params", _params),
    ("consts", _consts),
    ("tables", _tables),
    ("carried", _carried),
    ("ropes", _ropes),
    ("closing", _closing),
    ("drawing", _drawing),
    ("outputs", _outputs),
)
