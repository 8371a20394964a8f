"""The step while it is being optimized: nodes that can be joined, and the order they imply.

Two kinds of edges order nodes. Data: a reader after the maker. Versions: whoever reads a version of
a table before the node that writes over it.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bedstone.graph.refs import writes
from bedstone.lane.classes import LaneOp, overwritten, taken
from bedstone.lane.facts import Facts


@dataclass(frozen=True, slots=True)
class Node:
    """An op and the graph ops it stands for, ascending. The last of them names the node.

    `made` and `taken` are what the op makes and reads: asked for far more often than nodes change.
    """

    op: LaneOp
    sources: tuple[int, ...]
    made: tuple[str, ...]
    taken: tuple[str, ...]

    @classmethod
    def of(cls, op: LaneOp, sources: tuple[int, ...]) -> "Node":
        """The node of an op."""
        return cls(op, sources, writes(op), taken(op))

    @property
    def key(self) -> int:
        """The node's name: the graph index of the last op it stands for."""
        return self.sources[-1]


class Body:
    """Nodes by key, who makes and who reads each tensor, and a valid order of them all."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.nodes: dict[int, Node] = {}
        self._maker: dict[str, int] = {}
        self._readers: dict[str, list[int]] = {}
        self._overwriter: dict[str, int] = {}
        self._rank: dict[int, int] = {}
        self._places: list[int | None] = []
        for index, op in enumerate(facts.graph.ops):
            self._insert(Node.of(op, (index,)))
            self._rank[index] = index
            self._places.append(index)

    def maker(self, name: str) -> int | None:
        """The node that makes a tensor; None for a constant, a carried vector or a fresh table."""
        return self._maker.get(name)

    def readers(self, name: str) -> list[int]:
        """The nodes that read a tensor, a node that reads it twice twice."""
        return self._readers.get(name, [])

    def overwriter(self, version: str) -> int | None:
        """The node that writes over a table version."""
        return self._overwriter.get(version)

    def join(self, keys: Iterable[int], op: LaneOp) -> Node:
        """Put `op` in the place of the nodes `keys`, where the last of them stands."""
        gone = [self.nodes[key] for key in keys]
        rank = max(self._rank[node.key] for node in gone)
        for node in gone:
            self._remove(node)
        joined = Node.of(op, tuple(sorted(i for node in gone for i in node.sources)))
        self._insert(joined)
        self._put(joined.key, rank)
        first = min((self._rank[after] for after in self.after(joined.key)), default=rank)
        if first < rank:
            self._sort(first, rank)
        return joined

    def after(self, key: int, *, versions: bool = True) -> Iterator[int]:
        """The nodes that must follow a node; without `versions`, those that read its results."""
        node = self.nodes[key]
        for name in node.made:
            yield from self.readers(name)
        if versions:
            for version in node.taken:
                writer = self._overwriter.get(version, key)
                if writer != key:
                    yield writer

    def between(self, members: frozenset[int], starts: Iterable[int], *, versions: bool) -> bool:
        """Whether a path from `starts` reaches one of `members`."""
        last = max(self._rank[key] for key in members)
        waiting = [key for key in starts if self._rank[key] <= last]
        seen: set[int] = set()
        while waiting:
            key = waiting.pop()
            if key in members:
                return True
            if key not in seen:
                seen.add(key)
                later = self.after(key, versions=versions)
                waiting.extend(k for k in later if self._rank[k] <= last)
        return False

    def order(self) -> list[int]:
        """The nodes' keys in a valid order: that of the graph, wherever it still can be."""
        return [key for key in self._places if key is not None]

    def _sort(self, first: int, last: int) -> None:
        """Put the nodes at ranks `first` to `last` in order; nothing outside waits for another."""
        inside = range(first, last + 1)
        keys = [key for key in self._places[first : last + 1] if key is not None]
        ranks = [rank for rank in inside if self._places[rank] is not None]
        for rank, key in zip(ranks, self._sorted(keys), strict=True):
            self._put(key, rank)

    def _sorted(self, keys: list[int]) -> list[int]:
        """The keys in topological order: of those free to go, the earliest of the graph."""
        waits = dict.fromkeys(keys, 0)
        later = {key: [k for k in self.after(key) if k in waits] for key in keys}
        for after in later.values():
            for key in after:
                waits[key] += 1
        free = [key for key, count in waits.items() if count == 0]
        heapq.heapify(free)
        chosen: list[int] = []
        while free:
            chosen.append(heapq.heappop(free))
            for key in later[chosen[-1]]:
                waits[key] -= 1
                if waits[key] == 0:
                    heapq.heappush(free, key)
        return chosen

    def _put(self, key: int, rank: int) -> None:
        self._rank[key], self._places[rank] = rank, key

    def _insert(self, node: Node) -> None:
        self.nodes[node.key] = node
        self._maker.update(dict.fromkeys(node.made, node.key))
        self._overwriter.update(dict.fromkeys(overwritten(node.op), node.key))
        for name in node.taken:
            self._readers.setdefault(name, []).append(node.key)

    def _remove(self, node: Node) -> None:
        del self.nodes[node.key]
        self._places[self._rank.pop(node.key)] = None
        for made in set(node.made):
            del self._maker[made]
        for version in overwritten(node.op):
            del self._overwriter[version]
        for read in node.taken:
            self._readers[read].remove(node.key)
