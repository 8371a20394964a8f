"""Launches of a schedule that one kernel may do together, where a set has such a kernel.

Rotations and the attention that reads them: rotated queries need not lie in memory where nobody
else reads them.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from bedstone.lane.launch import Attention, Launch, Read, Rope, Sequences, ToBuf, ToRows
from bedstone.lane.schedule import Schedule
from bedstone.lane.touch import reads_of


def turned_for_one(schedule: Schedule) -> frozenset[int]:
    """The steps that rotate queries and keys for the attention of the next step and nobody else."""
    seen = _readers(schedule)
    steps = [step.launch for step in schedule.steps]
    pairs = enumerate(pairwise(steps))
    return frozenset(
        at
        for at, (first, second) in pairs
        if all(seen[name] == 1 for name in _turned(first, second)) and any(_turned(first, second))
    )


def _readers(schedule: Schedule) -> Counter[str]:
    """How often each tensor's memory is read, by whatever name."""
    homes = {b.tensor: b.view_of for b in schedule.buffers.values() if b.view_of is not None}
    names = [read.tensor for step in schedule.steps for read in reads_of(step.launch)]
    names += schedule.outputs
    return Counter(homes.get(name, name) for name in names)


def _turned(first: Launch, second: Launch) -> list[str]:
    """The queries that the first launch rotates and the second attends, of each member.

    None where the two are anything else.
    """
    made, read = list(_members(first)), list(_members(second))
    if len(made) != len(read):
        return []
    names = [_queries(a, b) for a, b in zip(made, read, strict=True)]
    return [name for name in names if name is not None] if None not in names else []


def _members(launch: Launch) -> Iterator[Launch]:
    yield from launch.members if isinstance(launch, Sequences) else (launch,)


def _queries(first: Launch, second: Launch) -> str | None:
    match first, second:
        case Rope(sides=(asking, asked)), Attention():
            queries, keys = asking.dst, asked.dst
        case _:
            return None
    if not (isinstance(queries, ToBuf) and isinstance(keys, ToRows)):
        return None
    same = (first.pos, first.rows, first.head_dim) == (second.pos, second.rows, second.dk)
    heads = (asking.heads, asked.heads) == (second.heads, second.groups)
    fits = second.q == Read(queries.tensor) and second.k.name == keys.version
    return queries.tensor if same and heads and fits else None
