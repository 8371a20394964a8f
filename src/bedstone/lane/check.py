"""What a lane asks of a step beyond that its graph is legal."""

from collections.abc import Collection, Iterator
from typing import get_args

from bedstone.errors import CallerError
from bedstone.graph.check import require
from bedstone.graph.refs import reads
from bedstone.graph.step import ArgMax, AtParam, Attention, Op, Rope, Set, StepGraph
from bedstone.lane.errors import ChunkLengthError, OpError, UnknownRuleError
from bedstone.lane.facts import Facts
from bedstone.lane.link import LINKED
from bedstone.lane.schedule import MAX_CHUNK, Numerics


def require_names(numerics: str, held: Collection[str], rules: Collection[str]) -> None:
    """Refuse numerics or steps to hold back that no lane knows."""
    if numerics not in get_args(Numerics):
        raise CallerError(f"numerics `{numerics}` is none of {', '.join(get_args(Numerics))}")
    unknown = sorted(set(held) - set(rules))
    if unknown:
        raise UnknownRuleError(unknown, rules)


def require_graph(graph: StepGraph) -> None:
    """Refuse a graph that is not legal, or that no lane can lower."""
    require(graph)
    if graph.form == "chunk" and graph.rows > MAX_CHUNK:
        raise ChunkLengthError(graph.rows, MAX_CHUNK)


def require_lowerable(facts: Facts) -> None:
    """Refuse an op whose tables or positions no launch can reach."""
    for index, op in enumerate(facts.graph.ops):
        why = next(_problems(op, facts), None)
        if why is not None:
            raise OpError(index, op.out, why)


def _problems(op: Op, facts: Facts) -> Iterator[str]:
    """A carried table is paged, so only attention reads it; a scratch table is plain memory."""
    if type(op) not in LINKED:
        yield f"no lane has a launch for a {type(op).__name__}"
        return
    match op:
        case Set():
            yield from _set_problems(op, facts)
        case Attention():
            yield from _attention_problems(op, facts)
        case Rope(offset=offset) if offset:
            yield "turns values inside a head, for which no lane has a launch"
        case ArgMax(x=x):
            wanted = map(facts.position, range(facts.rows(x)))
            missing = (name for name in wanted if name not in facts.graph.params)
            yield from (f"advances `{name}`, which is no param" for name in missing)
        case _:
            pass
    for name in sorted(set(reads(op)) & facts.storage.keys()):
        if not (facts.scratch(name) or isinstance(op, Attention | Set)):
            yield f"reads `{name}`, a carried table, which only an attention may"


def _set_problems(op: Set, facts: Facts) -> Iterator[str]:
    if op.column is not None:
        yield "writes part of a row, for which no lane has a launch"
    if isinstance(op.at, AtParam) and facts.scratch(op.table):
        yield f"writes scratch `{op.table}` where `{op.at.param}` says; its rows are literal"
    if op.x in facts.storage and not facts.scratch(op.x):
        yield f"reads `{op.x}`, a carried table, which only an attention may"


def _attention_problems(op: Attention, facts: Facts) -> Iterator[str]:
    if op.k == op.v:
        yield "reads values out of keys, for which no lane has a launch"
    for name in (op.k, op.v):
        if name not in facts.storage or facts.scratch(name):
            yield f"attends `{name}`, which is no carried table"
    if op.q in facts.storage and not facts.scratch(op.q):
        yield f"reads `{op.q}` as a query, a carried table"
