"""Views: rows at a literal index and parts of rows are no launches, unless something forbids it.

A row of a table that some node writes between the take and the row's last reader is copied where it
is taken, and so is a part that a reader cannot follow. Everything else, and every version of a
scratch table, is its parent's memory.
"""

from collections.abc import Collection, Mapping
from typing import TypeGuard

from bedstone.graph.step import Fixed, Part, Row
from bedstone.lane.body import Body
from bedstone.lane.classes import LaneOp
from bedstone.lane.layout import View, view_of


def find_views(body: Body, apart: Collection[str] = ()) -> Mapping[str, View]:
    """The tensors that are views, those in `apart` aside; the other rows and parts are copied."""
    facts = body.facts
    found = dict(facts.scratch_views)
    place = {key: at for at, key in enumerate(body.order())}
    for key in place:
        op = body.nodes[key].op
        if not is_taken(op) or op.out in apart or _changes(op, body, place):
            continue
        if isinstance(op, Part) and facts.cached(op.x):
            continue
        view = view_of(op, found.get(op.x, facts.whole(op.x)))
        if view is not None:
            found[op.out] = view
    return found


def is_taken(op: LaneOp) -> TypeGuard[Row | Part]:
    """Whether an op takes values that may stay where they are."""
    return isinstance(op, Part) or (isinstance(op, Row) and isinstance(op.at, Fixed))


def _changes(op: Row | Part, body: Body, place: Mapping[int, int]) -> bool:
    """Whether the table of a row is written after the take and no later than its last reader."""
    writer = _next_writer(op.x, body)
    return writer is not None and place[writer] <= _last_reader(op.out, body, place)


def _next_writer(name: str, body: Body) -> int | None:
    """The node that writes over the memory of `name`: a version, or values taken from one."""
    maker = body.maker(name)
    op = None if maker is None else body.nodes[maker].op
    if op is not None and is_taken(op):
        return _next_writer(op.x, body)
    return body.overwriter(name)


def _last_reader(name: str, body: Body, place: Mapping[int, int]) -> int:
    """The place of the last node that reads a tensor or a row taken from it; an output has none."""
    if name in body.facts.graph.outputs:
        return len(place)
    last = -1
    for key in body.readers(name):
        op = body.nodes[key].op
        if is_taken(op):
            last = max(last, _last_reader(op.out, body, place))
        last = max(last, place[key])
    return last
