"""What a lane asks of a step beyond that its graph is legal."""

from collections.abc import Collection, Iterator, Mapping
from typing import get_args

from bedstone.errors import CallerError
from bedstone.graph.check import require
from bedstone.graph.refs import reads
from bedstone.graph.step import (
    ArgMax,
    AtParam,
    Attention,
    Conv,
    Delta,
    Finish,
    Fixed,
    Op,
    Part,
    Row,
    Set,
    StepGraph,
)
from bedstone.lane.errors import ChunkLengthError, OpError, UnknownRuleError
from bedstone.lane.facts import Facts
from bedstone.lane.schedule import Numerics


def require_names(numerics: str, held: Collection[str], rules: Collection[str]) -> None:
    """Refuse numerics or steps to hold back that no lane knows."""
    if numerics not in get_args(Numerics):
        raise CallerError(f"numerics `{numerics}` is none of {', '.join(get_args(Numerics))}")
    unknown = sorted(set(held) - set(rules))
    if unknown:
        raise UnknownRuleError(unknown, rules)


def require_graph(graph: StepGraph, max_chunk: int) -> None:
    """Refuse a graph that is not legal, or a chunk of more rows than the lane compiles."""
    require(graph)
    if graph.form == "chunk" and graph.rows > max_chunk:
        raise ChunkLengthError(graph.rows, max_chunk)


def require_lowerable(facts: Facts) -> None:
    """Refuse an op whose tables or positions no launch can reach."""
    written: dict[str, frozenset[int]] = {}
    for index, op in enumerate(facts.graph.ops):
        why = next(_problems(op, facts), None) or next(_unwritten(op, written, facts), None)
        if why is not None:
            raise OpError(index, op.out, why)
        if isinstance(op, Set) and isinstance(op.at, Fixed):
            rows = range(op.at.row, op.at.row + facts.rows(op.x))
            written[op.out] = written.get(op.table, frozenset()) | frozenset(rows)


def _unwritten(op: Op, written: Mapping[str, frozenset[int]], facts: Facts) -> Iterator[str]:
    """A scratch table holds nothing but the rows that the step has written."""
    tables = {name for name in reads(op) if name in facts.storage and facts.scratch(name)}
    if isinstance(op, Set):
        tables.discard(op.table)
    for name in sorted(tables):
        wanted = set(range(facts.rows(name)))
        if isinstance(op, Row) and isinstance(op.at, Fixed):
            wanted = {op.at.row}
        missing = wanted - written.get(name, frozenset())
        if missing:
            yield f"reads row {min(missing)} of scratch `{name}`, which nothing wrote"


def _problems(op: Op, facts: Facts) -> Iterator[str]:
    """A carried table is paged or a sequence's state; a scratch table is plain memory."""
    match op:
        case Set():
            yield from _set_problems(op, facts)
        case Attention():
            yield from _attention_problems(op, facts)
        case Conv(ring=state, x=x) | Delta(state=state, v=x):
            yield from _state_problems(state, facts.rows(x), facts)
        case Part(x=x) if facts.cached(x) and op.units > 1:
            yield f"takes {op.units} windows of each row of `{x}`, a carried table"
        case ArgMax(x=x) | Finish(x=x):
            wanted = map(facts.position, range(facts.rows(x)))
            missing = (name for name in wanted if name not in facts.graph.params)
            yield from (f"advances `{name}`, which is no param" for name in missing)
        case _:
            pass
    may = isinstance(op, Attention | Set | Conv | Delta | Part)
    for name in sorted(set(reads(op)) & facts.storage.keys()):
        if not (facts.scratch(name) or may):
            yield f"reads `{name}`, a carried table, which only an attention or a part may"


def _set_problems(op: Set, facts: Facts) -> Iterator[str]:
    table = facts.graph.tables[facts.storage[op.table]]
    if table.zeros:
        yield f"writes rows of `{op.table}`, the state of a recurrence"
    if op.column is not None and table.scratch:
        yield f"writes a part of a row of scratch `{op.table}`"
    if isinstance(op.at, AtParam) and table.scratch:
        yield f"writes scratch `{op.table}` where `{op.at.param}` says; its rows are literal"
    if facts.cached(op.x):
        yield f"reads `{op.x}`, a carried table, which only an attention or a part may"


def _attention_problems(op: Attention, facts: Facts) -> Iterator[str]:
    for name in (op.k, op.v):
        kept = facts.cached(name) and not facts.graph.tables[facts.storage[name]].zeros
        if not (kept or name in facts.spread):
            yield f"attends `{name}`, which is no carried table and made of none"
    if (op.k in facts.spread) != (op.v in facts.spread):
        yield f"attends `{op.k}` and `{op.v}`, of which one is a carried table"
    if op.k in facts.spread and facts.graph.form == "batch":
        yield f"attends `{op.k}`, made of cached rows, in a batch"
    if facts.cached(op.q):
        yield f"reads `{op.q}` as a query, a carried table"


def _state_problems(state: str, rows: int, facts: Facts) -> Iterator[str]:
    """A batch's state belongs to the sequence its name ends in."""
    if facts.graph.form != "batch":
        if facts.position(0) not in facts.graph.params:
            yield f"carries `{state}` from `{facts.position(0)}` on, which is no param"
        return
    number = facts.storage[state].rpartition(".")[2]
    if not number.isdecimal() or f"pos.{number}" not in facts.graph.params:
        yield f"carries `{state}`, whose name ends in no sequence of the batch"
    if rows != 1:
        yield f"takes {rows} rows of one sequence of a batch"
