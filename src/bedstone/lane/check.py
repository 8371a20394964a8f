"""What a lane asks of a step beyond that its graph is legal."""

from collections.abc import Collection, Iterator
from typing import get_args

from bedstone.errors import CallerError
from bedstone.graph.check import require
from bedstone.graph.refs import reads
from bedstone.graph.step import ArgMax, AtParam, Attention, Op, Rope, Set, StepGraph
from bedstone.lane.errors import ChunkLengthError, OpError, UnknownRuleError
from bedstone.lane.facts import Facts
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
    match op:
        case Set(table=table, at=AtParam(param=param)) if facts.scratch(table):
            yield f"writes scratch `{table}` where `{param}` says; its rows are literal"
        case Attention(k=k, v=v):
            if k == v:
                yield "reads values out of keys, for which no lane has a launch"
            yield from (f"attends `{n}`, which is scratch" for n in (k, v) if facts.scratch(n))
        case Set(column=int()):
            yield "writes part of a row, for which no lane has a launch"
        case Rope(offset=offset) if offset:
            yield "turns values inside a head, for which no lane has a launch"
        case ArgMax(x=x):
            wanted = map(facts.position, range(facts.rows(x)))
            missing = (name for name in wanted if name not in facts.graph.params)
            yield from (f"advances `{name}`, which is no param" for name in missing)
        case _:
            pass
    for name in set(reads(op)) & facts.storage.keys():
        if not (facts.scratch(name) or isinstance(op, Attention | Set)):
            yield f"reads `{name}`, a carried table, which only an attention may"
