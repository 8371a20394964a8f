"""Views: rows taken at a literal index are no launches, unless their table changes underneath.

A row of a table that some node writes between the take and the row's last reader is copied where it
is taken. Every other row, and every version of a scratch table, is its parent's memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bedstone.graph.step import Fixed, Row
from bedstone.lane.body import Body
from bedstone.lane.facts import Facts
from bedstone.lane.schedule import QBLOCK


@dataclass(frozen=True, slots=True)
class View:
    """A tensor that starts `offset` elements into `parent`, which is no view itself."""

    parent: str
    offset: int


def quant_in_place(offset: int) -> bool:
    """Whether a view reads its parent's quantized form: it starts on a whole block."""
    return offset % QBLOCK == 0


def find_views(body: Body) -> Mapping[str, View]:
    """The tensors that are views. A row at a literal index that is not among them is copied."""
    found = _versions(body.facts)
    place = {key: at for at, key in enumerate(body.order())}
    for key in place:
        op = body.nodes[key].op
        if isinstance(op, Row) and isinstance(op.at, Fixed) and not _changes(op, body, place):
            parent = found.get(op.x, View(op.x, 0))
            start = parent.offset + op.at.row * body.facts.width(op.x)
            found[op.out] = View(parent.parent, start)
    return found


def _versions(facts: Facts) -> dict[str, View]:
    """Each version of a scratch table, as the table's memory."""
    made = {version: table for version, table in facts.storage.items() if version != table}
    return {v: View(table, 0) for v, table in made.items() if facts.scratch(v)}


def _changes(row: Row, body: Body, place: Mapping[int, int]) -> bool:
    """Whether the table of a row is written after the take and no later than its last reader."""
    writer = _next_writer(row.x, body)
    return writer is not None and place[writer] <= _last_reader(row.out, body, place)


def _next_writer(name: str, body: Body) -> int | None:
    """The node that writes over the memory of `name`: a version, or a row taken from one."""
    maker = body.maker(name)
    op = None if maker is None else body.nodes[maker].op
    if isinstance(op, Row) and isinstance(op.at, Fixed):
        return _next_writer(op.x, body)
    return body.overwriter(name)


def _last_reader(name: str, body: Body, place: Mapping[int, int]) -> int:
    """The place of the last node that reads a tensor or a row taken from it; an output has none."""
    if name in body.facts.graph.outputs:
        return len(place)
    last = -1
    for key in body.readers(name):
        op = body.nodes[key].op
        if isinstance(op, Row) and isinstance(op.at, Fixed):
            last = max(last, _last_reader(op.out, body, place))
        last = max(last, place[key])
    return last


def memory_of(name: str, views: Mapping[str, View]) -> str:
    """The tensor whose memory holds the values of `name`."""
    view = views.get(name)
    return name if view is None else view.parent
